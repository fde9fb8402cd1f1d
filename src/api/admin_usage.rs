//! `GET /api/admin/usage`: the rows of the ledger.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Query;
use super::auth::SettingsCaller;
use super::respond::{ApiResult, ErrorBody};
use crate::ledger;
use crate::model::reports::UsageRow;
use crate::model::{Day, Error, WorkspaceId};
use crate::reports::Scope;
use crate::services::Services;

const DEFAULT_DAYS: i64 = 30;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Params {
    /// One workspace; all that the caller may see when absent.
    workspace: Option<String>,
    /// The first day, YYYY-MM-DD; 30 days up to `to` when absent.
    from: Option<String>,
    /// The last day, included; today when absent.
    to: Option<String>,
}

#[utoipa::path(
    get, path = "/api/admin/usage", tag = "Admin", params(Params),
    responses((status = 200, body = Vec<UsageRow>), (status = 403, body = ErrorBody), (status = 422, body = ErrorBody))
)]
pub async fn handler(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Query(params): Query<Params>,
) -> ApiResult<Json<Vec<UsageRow>>> {
    let scope = caller.settings_scope()?;
    let day = |name: &str, text: Option<&str>| match text.filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => Day::parse(text)
            .map(Some)
            .ok_or_else(|| Error::Invalid(format!("{name} has to be a day of the form YYYY-MM-DD"))),
    };
    let to = day("to", params.to.as_deref())?;
    let from = day("from", params.from.as_deref())?;
    let to = to.unwrap_or_else(|| services.clock.now().day());
    let from = from.unwrap_or_else(|| to.plus(1 - DEFAULT_DAYS));
    if from > to {
        return Err(Error::Invalid("from has to be no later than to".into()).into());
    }

    let one = params.workspace.filter(|id| !id.is_empty()).map(WorkspaceId::from);
    let mut rows = Vec::new();
    match (one, &scope) {
        (Some(one), scope) => {
            if !scope.contains(&one) {
                return Err(Error::no_such("workspace", one.as_str()).into());
            }
            services.reports.workspace_row(&one).await?;
            rows = ledger::read::rows(&services.store, Some(&one), from, to).await?;
        }
        (None, Scope::All) => rows = ledger::read::rows(&services.store, None, from, to).await?,
        (None, Scope::Only(own)) => {
            for workspace in own {
                rows.extend(ledger::read::rows(&services.store, Some(workspace), from, to).await?);
            }
        }
    }
    Ok(Json(rows))
}
