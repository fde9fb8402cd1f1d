//! The windows' past: read from `rate_limit_usage` at start, removed from it when a day has passed.

use super::book::CandidateId;
use super::quotas::Quotas;
use super::windows::Span;
use crate::ledger::WindowKind;
use crate::model::Timestamp;
use crate::store::{Store, to_i64, to_u64};

/// Rows removed in one transaction, so that nobody waits long for the writer.
const PRUNE_STEP: u64 = 500;

/// Rebuilds all windows. Reads one row a slot of them, however many calls there were, and each
/// slot as memory had it, so the counts equal those before the restart.
pub(super) async fn restore(store: &Store, quotas: &Quotas, now: Timestamp) -> Result<(), sqlx::Error> {
    for span in [Span::Day, Span::Minute] {
        let slots: Vec<(String, String, String, String, i64, i64, i64)> = sqlx::query_as(
            "SELECT platform, model_id, key_id, kind, COUNT(*), CAST(SUM(tokens) AS BIGINT), MAX(created_at_ms)
             FROM rate_limit_usage WHERE created_at_ms >= $1
             GROUP BY platform, model_id, key_id, kind, created_at_ms / $2
             ORDER BY MAX(created_at_ms)",
        )
        .bind(oldest(span, now))
        .bind(span.slot_ms())
        .fetch_all(store.read())
        .await?;
        for (platform, model, key, kind, requests, tokens, last_ms) in slots {
            // Rows of a kind that others made up count nothing.
            let Some(kind) = WindowKind::parse(&kind) else {
                continue;
            };
            let amount = match kind {
                WindowKind::Request => requests,
                WindowKind::Tokens => tokens,
            };
            let id = CandidateId::new(&platform, &model, &key);
            quotas.restore(&id, Timestamp(last_ms), span, kind, to_u64(amount));
        }
    }
    Ok(())
}

/// Removes one step of the rows that no window counts any more. True where there are more.
pub(super) async fn prune(store: &Store, now: Timestamp) -> Result<bool, sqlx::Error> {
    let end = oldest(Span::Day, now);
    let boundary: Option<i64> = sqlx::query_scalar(
        "SELECT created_at_ms FROM rate_limit_usage WHERE created_at_ms < $1 ORDER BY created_at_ms LIMIT 1 OFFSET $2",
    )
    .bind(end)
    .bind(to_i64(PRUNE_STEP))
    .fetch_optional(store.read())
    .await?;
    let last = boundary.unwrap_or(end - 1);
    let mut tx = store.begin().await?;
    sqlx::query("DELETE FROM rate_limit_usage WHERE created_at_ms <= $1")
        .bind(last)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(boundary.is_some())
}

/// The beginning of the oldest slot of which something may count at `now`.
fn oldest(span: Span, now: Timestamp) -> i64 {
    let width = span.slot_ms();
    (now.ms() - span.length_ms()).div_euclid(width) * width
}
