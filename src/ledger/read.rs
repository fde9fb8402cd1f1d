//! Reading the ledger.

use crate::model::reports::UsageRow;
use crate::model::{Day, WorkspaceId};
use crate::store::{Store, to_u64};

type Columns = (String, String, String, String, i64, i64, i64, i64, i64);

/// The rows of the days `from` to `to`, both included, of one workspace or (with `None`) of all,
/// by workspace, day, route and model.
pub async fn rows(
    store: &Store,
    workspace: Option<&WorkspaceId>,
    from: Day,
    to: Day,
) -> Result<Vec<UsageRow>, sqlx::Error> {
    const OF_ONE: &str =
        "SELECT workspace_id, CAST(day AS TEXT), route, model, input_tokens, output_tokens, requests,
            estimated_input_tokens, estimated_output_tokens
        FROM llm_usage WHERE workspace_id = $1 AND day >= date($2) AND day <= date($3)
        ORDER BY workspace_id, day, route, model";
    // The join makes it one index range a workspace instead of a scan of the whole ledger.
    const OF_ALL: &str =
        "SELECT u.workspace_id, CAST(u.day AS TEXT), u.route, u.model, u.input_tokens, u.output_tokens, u.requests,
            u.estimated_input_tokens, u.estimated_output_tokens
        FROM workspaces w JOIN llm_usage u ON u.workspace_id = w.id AND u.day >= date($1) AND u.day <= date($2)
        ORDER BY u.workspace_id, u.day, u.route, u.model";
    let query = match workspace {
        Some(workspace) => sqlx::query_as::<_, Columns>(OF_ONE).bind(workspace.as_str().to_owned()),
        None => sqlx::query_as(OF_ALL),
    };
    let rows = query.bind(from.ymd()).bind(to.ymd()).fetch_all(store.read()).await?;
    Ok(rows.into_iter().filter_map(row).collect())
}

/// None for a day that is none: another program's slip, which must not take the page down.
fn row(
    (workspace, day, route, model, input, output, requests, est_input, est_output): Columns,
) -> Option<UsageRow> {
    Some(UsageRow {
        workspace_id: workspace.into(),
        day: Day::parse(day.get(..10)?)?,
        route,
        model,
        input_tokens: to_u64(input),
        output_tokens: to_u64(output),
        requests: to_u64(requests),
        estimated_input_tokens: to_u64(est_input),
        estimated_output_tokens: to_u64(est_output),
    })
}

/// One series of `/metrics`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TotalRow {
    pub workspace: String,
    pub route: String,
    pub model: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub requests: u64,
}

/// The ledger summed over all days.
pub async fn totals(store: &Store) -> Result<Vec<TotalRow>, sqlx::Error> {
    let rows: Vec<(String, String, String, i64, i64, i64)> = sqlx::query_as(
        "SELECT workspace_id, route, model, input_tokens, output_tokens, requests FROM llm_usage_totals
         ORDER BY workspace_id, route, model",
    )
    .fetch_all(store.read())
    .await?;
    Ok(rows
        .into_iter()
        .map(|(workspace, route, model, input, output, requests)| TotalRow {
            workspace,
            route,
            model,
            input_tokens: to_u64(input),
            output_tokens: to_u64(output),
            requests: to_u64(requests),
        })
        .collect())
}
