//! Changes of the pool by an admin: platforms, keys and models made, changed and removed, cooldowns cleared,
//! keys tried. Each change is entered in the audit trail in its transaction, and in force when this returns.
//!
//! What a directory file made can be changed too. The next `apply` of the file puts back what the file says.

mod cooldown;
mod keys;
mod models;
mod platforms;
mod trial;

use serde_json::Value;

use super::Pool;
use super::records::Settings;
use crate::audit::{self, Actor, Change};
use crate::model::Error;
use crate::store::Tx;

pub use keys::NewKey;
pub use models::ModelChange;

/// The audit entry of a change; none where nothing was different.
pub type Done = Option<i64>;

/// Enters the change, makes other processes notice it, and brings this one up to date.
async fn finish(
    pool: &Pool,
    mut tx: Tx,
    actor: &Actor,
    action: &str,
    before: Option<Settings>,
    after: Option<Settings>,
) -> Result<Done, Error> {
    if before == after {
        tx.rollback().await?;
        return Ok(None);
    }
    let id = enter(pool, &mut tx, actor, action, before, after).await?;
    sqlx::query("UPDATE pool_version SET version = version + 1 WHERE id = 1").execute(&mut *tx).await?;
    tx.commit().await?;
    // The change is made. Where reading it fails, which is logged, the pool tries again by itself.
    let _ = pool.reload().await;
    Ok(Some(id))
}

async fn enter(
    pool: &Pool,
    tx: &mut Tx,
    actor: &Actor,
    action: &str,
    before: Option<Settings>,
    after: Option<Settings>,
) -> Result<i64, Error> {
    let change = Change {
        actor,
        action,
        workspace: None,
        before: before.map(Value::Object),
        after: after.map(Value::Object),
    };
    Ok(audit::append(tx, pool.clock().now(), change).await?)
}

/// Where a new record stands: behind those that are there.
async fn next_position(tx: &mut Tx, of: Positions<'_>) -> Result<i64, sqlx::Error> {
    match of {
        Positions::Platforms => {
            sqlx::query_scalar("SELECT COALESCE(MAX(position), -1) + 1 FROM platforms")
                .fetch_one(&mut **tx)
                .await
        }
        Positions::Keys(platform) => {
            sqlx::query_scalar(
                "SELECT COALESCE(MAX(position), -1) + 1 FROM platform_keys WHERE platform_id = $1",
            )
            .bind(platform.to_owned())
            .fetch_one(&mut **tx)
            .await
        }
        Positions::Models(platform) => {
            sqlx::query_scalar(
                "SELECT COALESCE(MAX(position), -1) + 1 FROM platform_models WHERE platform_id = $1",
            )
            .bind(platform.to_owned())
            .fetch_one(&mut **tx)
            .await
        }
    }
}

enum Positions<'a> {
    Platforms,
    Keys(&'a str),
    Models(&'a str),
}

async fn platform_must_exist(tx: &mut Tx, id: &str) -> Result<(), Error> {
    let known: Option<i64> = sqlx::query_scalar("SELECT CAST(1 AS BIGINT) FROM platforms WHERE id = $1")
        .bind(id.to_owned())
        .fetch_optional(&mut **tx)
        .await?;
    known.map(drop).ok_or_else(|| Error::no_such("platform", id))
}

/// PostgreSQL takes no NUL in a text, and no id has one.
fn plain(text: &str) -> bool {
    !text.contains('\0')
}
