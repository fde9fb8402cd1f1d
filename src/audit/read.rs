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

/// Newest first: by id, or where times are asked for by time, in the order of the index that finds them.
/// (A clock may have been set back; both orders are complete.) Each condition that isn't asked for is left
/// out of the statement, so that the index that fits the rest is used.
pub async fn list(store: &Store, query: &Query) -> Result<Vec<Entry>, sqlx::Error> {
    let mut sql =
        "SELECT id, at_ms, actor, action, workspace_id, before, after, hash FROM audit_log WHERE 1 = 1"
            .to_owned();
    let mut place: usize = 0;
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
    let by_time = query.from.is_some() || query.to.is_some();
    let mut next = |given: bool, than: &str| {
        if given {
            place += 1;
            sql.push_str(&if by_time {
                format!(" AND (at_ms, id) {than} ({}, ${place})", time_of(place))
            } else {
                format!(" AND id {than} ${place}")
            });
        }
    };
    next(query.before.is_some(), "<");
    next(query.after.is_some(), ">");
    let order = if query.after.is_some() { "ASC" } else { "DESC" };
    let time = if by_time { format!("at_ms {order}, ") } else { String::new() };
    sql.push_str(&format!(" ORDER BY {time}id {order} LIMIT ${}", place + 1));

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

/// When the entry was written whose id is bound at `place`, or the last one before it.
fn time_of(place: usize) -> String {
    format!(
        "COALESCE((SELECT p.at_ms FROM audit_log p WHERE p.id <= ${place} ORDER BY p.id DESC LIMIT 1), 0)"
    )
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

#[cfg(test)]
mod tests {
    use super::super::{Actor, Change, append};
    use super::*;
    use crate::store::testing::fresh;

    /// The ids of all pages of two, from the newest or from the oldest on.
    async fn paged(store: &Store, query: Query, back: bool) -> Vec<i64> {
        let mut ids: Vec<i64> = Vec::new();
        loop {
            let page = Query { limit: 2, ..query.clone() };
            let page = match ids.last() {
                last if back => Query { after: Some(last.copied().unwrap_or(0)), ..page },
                last => Query { before: last.copied(), ..page },
            };
            let mut entries = list(store, &page).await.unwrap();
            if back {
                entries.reverse();
            }
            if entries.is_empty() {
                return ids;
            }
            ids.extend(entries.iter().map(|entry| entry.id));
        }
    }

    #[tokio::test]
    async fn pages_within_times_miss_nothing_though_the_clock_was_set_back() {
        let fresh = fresh().await;
        for at in [1_000, 2_000, 3_000, 1_500, 1_500, 2_500, 4_000] {
            let mut tx = fresh.store.begin().await.unwrap();
            let change = Change {
                actor: &Actor::Cli,
                action: "limits.set",
                workspace: None,
                before: None,
                after: None,
            };
            append(&mut tx, Timestamp(at), change).await.unwrap();
            tx.commit().await.unwrap();
        }
        let within =
            |from, to| Query { from: Some(Timestamp(from)), to: Some(Timestamp(to)), ..Query::default() };
        assert_eq!(paged(&fresh.store, within(1_200, 4_000), false).await, [3, 6, 2, 5, 4]);
        assert_eq!(paged(&fresh.store, within(1_200, 4_000), true).await, [4, 5, 2, 6, 3]);
        assert_eq!(paged(&fresh.store, Query::default(), false).await, [7, 6, 5, 4, 3, 2, 1]);
        // Between two entries, and past the last.
        let before = Query { before: Some(99), limit: 9, ..within(0, 2_000) };
        let ids: Vec<i64> = list(&fresh.store, &before).await.unwrap().iter().map(|entry| entry.id).collect();
        assert_eq!(ids, [5, 4, 1]);
    }
}
