//! Reading the trail, newest first.

use serde::Serialize;
use serde_json::Value;
use sqlx::AssertSqlSafe;

use crate::model::{Timestamp, WorkspaceId};
use crate::store::Store;

/// An entry as `GET /api/admin/audit` tells it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Entry {
    pub id: i64,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    #[schema(value_type = Option<String>)]
    pub workspace: Option<WorkspaceId>,
    pub before: Value,
    pub after: Value,
    pub hash: String,
}

/// What to read: entries that fit all that is given.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub workspace: Option<WorkspaceId>,
    pub actor: Option<String>,
    /// Inclusive.
    pub from: Option<Timestamp>,
    /// Exclusive.
    pub to: Option<Timestamp>,
    /// Exclusive: the id that the page before ended with.
    pub before: Option<i64>,
    /// Exclusive. The entries next to it are read, those that were written right after it.
    pub after: Option<i64>,
    pub limit: i64,
}

type Columns = (i64, i64, String, String, Option<String>, Option<String>, Option<String>, String);

/// Newest first. Each condition that isn't asked for is left out of the statement, so that the
/// index that fits the rest is used.
pub async fn list(store: &Store, query: &Query) -> Result<Vec<Entry>, sqlx::Error> {
    let mut sql =
        "SELECT id, at_ms, actor, action, workspace_id, before, after, hash FROM audit_log WHERE 1 = 1"
            .to_owned();
    let mut place = 0;
    let mut condition = |given: bool, text: &str| {
        if given {
            place += 1;
            sql.push_str(&format!(" AND {text} ${place}"));
        }
    };
    condition(query.workspace.is_some(), "workspace_id =");
    condition(query.actor.is_some(), "actor =");
    condition(query.from.is_some(), "at_ms >=");
    condition(query.to.is_some(), "at_ms <");
    condition(query.before.is_some(), "id <");
    condition(query.after.is_some(), "id >");
    let order = if query.after.is_some() { "ASC" } else { "DESC" };
    sql.push_str(&format!(" ORDER BY id {order} LIMIT ${}", place + 1));

    // The text is put together from the constants above alone; values are bound.
    let mut statement = sqlx::query_as::<_, Columns>(AssertSqlSafe(sql));
    if let Some(workspace) = &query.workspace {
        statement = statement.bind(workspace.as_str().to_owned());
    }
    if let Some(actor) = &query.actor {
        statement = statement.bind(actor.clone());
    }
    for number in [query.from.map(Timestamp::ms), query.to.map(Timestamp::ms), query.before, query.after]
        .into_iter()
        .flatten()
    {
        statement = statement.bind(number);
    }
    let mut rows = statement.bind(query.limit).fetch_all(store.read()).await?;
    if query.after.is_some() {
        rows.reverse();
    }
    Ok(rows.into_iter().map(entry).collect())
}

fn entry((id, at_ms, actor, action, workspace, before, after, hash): Columns) -> Entry {
    let value = |text: Option<String>| {
        text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap_or(Value::String(text)))
    };
    Entry {
        id,
        at: Timestamp(at_ms),
        actor,
        action,
        workspace: workspace.map(Into::into),
        before: value(before),
        after: value(after),
        hash,
    }
}
