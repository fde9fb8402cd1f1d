//! One row of `rate_limit_usage`: what a provider key's sliding windows are rebuilt from.

use std::sync::Arc;

use crate::model::Timestamp;
use crate::store::{Tx, to_i64};

/// What a row counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowKind {
    /// One request that the provider answered.
    Request,
    /// The tokens of one call.
    Tokens,
}

impl WindowKind {
    /// As the table has it.
    pub fn as_str(self) -> &'static str {
        match self {
            WindowKind::Request => "request",
            WindowKind::Tokens => "tokens",
        }
    }

    /// Reads what the table has; nothing for what others wrote and this doesn't know.
    pub fn parse(text: &str) -> Option<Self> {
        [WindowKind::Request, WindowKind::Tokens].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A row to be written. The time is the one that memory counts it from, so that the windows after
/// a restart equal those before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRow {
    pub platform: Arc<str>,
    pub model_id: Arc<str>,
    pub key_id: Arc<str>,
    pub kind: WindowKind,
    /// 0 in a row of a request.
    pub tokens: u64,
    pub created_at: Timestamp,
}

/// Writes rows in the transaction that writes what they belong to.
pub async fn insert(tx: &mut Tx, rows: impl IntoIterator<Item = &WindowRow>) -> Result<(), sqlx::Error> {
    for row in rows {
        sqlx::query(
            "INSERT INTO rate_limit_usage (platform, model_id, key_id, kind, tokens, created_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(row.platform.to_string())
        .bind(row.model_id.to_string())
        .bind(row.key_id.to_string())
        .bind(row.kind.as_str())
        .bind(to_i64(row.tokens))
        .bind(row.created_at.ms())
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}
