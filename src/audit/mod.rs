//! The trail of changes: who, when, what, before, after, chained by hashes.
//!
//! [`append`] writes into the transaction of the change that it records, so neither can be there
//! without the other. SQLite's single writer and PostgreSQL's table lock serialise the changes, so
//! each entry's `before` is the last `after`.

mod read;
mod verify;

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::{Timestamp, WorkspaceId};
use crate::store::Tx;

pub use read::{Entry, Query, list};
pub(crate) use verify::verify_on;
pub use verify::{Verdict, verify};

/// The `previous_hash` of the first entry.
pub const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A person, by e-mail address.
    User(String),
    /// `tollkeeper limits set` and the like.
    Cli,
    /// `tollkeeper apply`.
    Apply,
    /// The server itself: the first admin, demo data.
    System,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Actor::User(email) => email,
            Actor::Cli => "cli",
            Actor::Apply => "apply",
            Actor::System => "system",
        })
    }
}

/// A change to be recorded. `before` and `after` hold settings, never secrets.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    pub actor: &'a Actor,
    /// A noun and a verb: `limits.set`, `key.revoke`, `user.add`.
    pub action: &'a str,
    pub workspace: Option<&'a WorkspaceId>,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// Records a change in the transaction that makes it, and in the log. Answers the entry's id.
pub async fn append(tx: &mut Tx, at: Timestamp, change: Change<'_>) -> Result<i64, sqlx::Error> {
    let last: Option<(i64, String)> =
        sqlx::query_as("SELECT id, hash FROM audit_log ORDER BY id DESC LIMIT 1")
            .fetch_optional(&mut **tx)
            .await?;
    let (id, previous) = last.map_or_else(|| (1, FIRST.to_owned()), |(id, hash)| (id + 1, hash));
    let actor = change.actor.to_string();
    let workspace = change.workspace.map(|w| w.as_str().to_owned());
    let before = change.before.map(|v| v.to_string());
    let after = change.after.map(|v| v.to_string());
    let hash = hash(&Hashed {
        previous: &previous,
        id,
        at_ms: at.ms(),
        actor: &actor,
        action: change.action,
        workspace: workspace.as_deref(),
        before: before.as_deref(),
        after: after.as_deref(),
    });
    tracing::info!(
        audit.id = id, audit.actor = %actor, audit.action = change.action, audit.workspace = workspace,
        audit.before = before, audit.after = after, "change recorded"
    );
    sqlx::query(
        "INSERT INTO audit_log (id, at_ms, actor, action, workspace_id, before, after, previous_hash, hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id)
    .bind(at.ms())
    .bind(actor)
    .bind(change.action)
    .bind(workspace)
    .bind(before)
    .bind(after)
    .bind(previous)
    .bind(hash)
    .execute(&mut **tx)
    .await?;
    Ok(id)
}

struct Hashed<'a> {
    previous: &'a str,
    id: i64,
    at_ms: i64,
    actor: &'a str,
    action: &'a str,
    workspace: Option<&'a str>,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

/// SHA-256 over the fields as one JSON array, so that no two rows can read alike.
fn hash(row: &Hashed<'_>) -> String {
    let fields = serde_json::json!([
        row.previous,
        row.id,
        row.at_ms,
        row.actor,
        row.action,
        row.workspace,
        row.before,
        row.after
    ]);
    hex(&Sha256::digest(fields.to_string()))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
