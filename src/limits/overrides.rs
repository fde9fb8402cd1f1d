//! A workspace's settings: read with the day's total on every request, changed with an audit line.

use serde_json::{Value, json};

use crate::audit::{self, Actor};
use crate::model::ids::is_id;
use crate::model::limit::{Edit, LimitChange, Overrides};
use crate::model::{Day, Error, Setting, Timestamp, WorkspaceId};
use crate::store::{Store, Tx, to_u64};

/// What the gate needs to know of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    pub overrides: Overrides,
    pub day: Day,
    /// Input and output tokens recorded on that day.
    pub used: u64,
}

/// The settings and the day's total, in one statement: they are of the same instant.
pub async fn current(store: &Store, workspace: &WorkspaceId, day: Day) -> Result<Current, sqlx::Error> {
    let (rate, budget, used): (Option<i64>, Option<i64>, i64) = sqlx::query_as(
        "SELECT l.rate_per_minute, l.daily_token_budget,
                (SELECT CAST(COALESCE(SUM(u.input_tokens + u.output_tokens), 0) AS BIGINT)
                 FROM llm_usage u WHERE u.workspace_id = $1 AND u.day = date($2))
         FROM (SELECT 1 AS one) o LEFT JOIN workspace_limits l ON l.workspace_id = $1",
    )
    .bind(workspace.as_str().to_owned())
    .bind(day.ymd())
    .fetch_one(store.read())
    .await?;
    let overrides = Overrides { rate: Setting::from_stored(rate), budget: Setting::from_stored(budget) };
    Ok(Current { overrides, day, used: to_u64(used) })
}

/// Changes a workspace's settings and says so in the audit trail, in one transaction. Nothing is
/// written when nothing changes. The next model request obeys it.
///
/// # Errors
/// `NotFound` for a workspace that doesn't exist.
pub async fn change(
    store: &Store,
    at: Timestamp,
    actor: &Actor,
    workspace: &WorkspaceId,
    change: LimitChange,
) -> Result<Overrides, Error> {
    let mut tx = store.begin().await?;
    must_exist(&mut tx, workspace).await?;
    let after = change_in(&mut tx, at, actor, workspace, change).await?;
    tx.commit().await?;
    Ok(after)
}

/// [`change`] by someone who has seen the settings as they may no longer be.
///
/// # Errors
/// `Conflict` where someone else changed meanwhile what this edit touches, `NotFound`.
pub async fn edit(
    store: &Store,
    at: Timestamp,
    actor: &Actor,
    workspace: &WorkspaceId,
    edit: Edit,
) -> Result<Overrides, Error> {
    let mut tx = store.begin().await?;
    must_exist(&mut tx, workspace).await?;
    let change = edit.onto(settings(&mut tx, workspace).await?).map_err(Error::Conflict)?;
    let after = change_in(&mut tx, at, actor, workspace, change).await?;
    tx.commit().await?;
    Ok(after)
}

async fn must_exist(tx: &mut Tx, workspace: &WorkspaceId) -> Result<(), Error> {
    let missing = || Error::no_such("workspace", workspace.as_str());
    if !is_id(workspace.as_str()) {
        return Err(missing());
    }
    let known: Option<(i64,)> = sqlx::query_as("SELECT 1 FROM workspaces WHERE id = $1")
        .bind(workspace.as_str().to_owned())
        .fetch_optional(&mut **tx)
        .await?;
    known.map(drop).ok_or_else(missing)
}

async fn settings(tx: &mut Tx, workspace: &WorkspaceId) -> Result<Overrides, sqlx::Error> {
    let row: Option<(Option<i64>, Option<i64>)> = sqlx::query_as(
        "SELECT rate_per_minute, daily_token_budget FROM workspace_limits WHERE workspace_id = $1",
    )
    .bind(workspace.as_str().to_owned())
    .fetch_optional(&mut **tx)
    .await?;
    Ok(row.map_or_else(Overrides::default, |(rate, budget)| Overrides {
        rate: Setting::from_stored(rate),
        budget: Setting::from_stored(budget),
    }))
}

/// [`change`] within a transaction of the caller's, who has seen to it that the workspace exists.
pub async fn change_in(
    tx: &mut Tx,
    at: Timestamp,
    actor: &Actor,
    workspace: &WorkspaceId,
    change: LimitChange,
) -> Result<Overrides, sqlx::Error> {
    let before = settings(tx, workspace).await?;
    let after = change.apply_to(before);
    if after == before {
        return Ok(before);
    }
    sqlx::query(
        "INSERT INTO workspace_limits (workspace_id, rate_per_minute, daily_token_budget) VALUES ($1, $2, $3)
         ON CONFLICT (workspace_id) DO UPDATE SET rate_per_minute = excluded.rate_per_minute,
           daily_token_budget = excluded.daily_token_budget, updated_at = excluded.updated_at",
    )
    .bind(workspace.as_str().to_owned())
    .bind(after.rate.stored())
    .bind(after.budget.stored())
    .execute(&mut **tx)
    .await?;
    let entry = audit::Change {
        actor,
        action: "limits.set",
        workspace: Some(workspace),
        before: Some(stored(before)),
        after: Some(stored(after)),
    };
    audit::append(tx, at, entry).await?;
    Ok(after)
}

/// The form that the table and the JSON API have: null inherits, 0 disables.
fn stored(overrides: Overrides) -> Value {
    json!({ "rate_per_minute": overrides.rate.stored(), "daily_token_budget": overrides.budget.stored() })
}
