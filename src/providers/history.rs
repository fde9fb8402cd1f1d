//! The windows' past: read from `rate_limit_usage` at start, removed from it when a day has passed; and
//! the present of other replicas: what they write is read as they write it.
//!
//! Each replica commits its rows in the order of their numbers (`seq`), so "up to this number" says
//! exactly what has been read of it: no row twice, none missed, whatever clocks say.

use std::collections::HashMap;

use sqlx::{Any, Executor};

use super::book::CandidateId;
use super::quotas::Quotas;
use super::windows::Span;
use crate::ledger::WindowKind;
use crate::model::Timestamp;
use crate::store::{Store, Tx, to_i64, to_u64};

/// Rows removed in one transaction, so that nobody waits long for the writer.
const PRUNE_STEP: u64 = 500;

/// By replica, the number of its last row that has been counted here.
#[derive(Debug, Default)]
pub(super) struct Heads(HashMap<String, i64>);

/// Rebuilds all windows. Reads one row a slot of them, however many calls there were, and each
/// slot as memory had it, so the counts equal those before the restart. What other replicas write
/// after that is for [`follow`].
pub(super) async fn restore(store: &Store, quotas: &Quotas, now: Timestamp) -> Result<Heads, sqlx::Error> {
    let mut tx = store.snapshot().await?;
    let heads = heads(&mut *tx).await?;
    for span in [Span::Day, Span::Minute] {
        let mut from = oldest(span, now);
        loop {
            let next = from + stretch(span);
            // What clocks of others date later is in the last one.
            let to = if next > now.ms() { i64::MAX } else { next };
            restore_stretch(&mut tx, quotas, span, from, to).await?;
            if to == i64::MAX {
                break;
            }
            from = to;
        }
    }
    tx.commit().await?;
    Ok(heads)
}

/// How much of a window one statement reads, in whole slots: a busy day has more rows than one statement has time for.
fn stretch(span: Span) -> i64 {
    match span {
        Span::Day => span.slot_ms(),
        Span::Minute => span.length_ms(),
    }
}

/// Counts the rows from `from` up to `to`, excluded.
async fn restore_stretch(
    tx: &mut Tx,
    quotas: &Quotas,
    span: Span,
    from: i64,
    to: i64,
) -> Result<(), sqlx::Error> {
    let slots: Vec<(String, String, String, String, i64, i64, i64)> = sqlx::query_as(
        "SELECT platform, model_id, key_id, kind, COUNT(*), CAST(SUM(tokens) AS BIGINT), MAX(created_at_ms)
         FROM rate_limit_usage WHERE created_at_ms >= $1 AND created_at_ms < $2
         GROUP BY platform, model_id, key_id, kind, created_at_ms / $3
         ORDER BY MAX(created_at_ms)",
    )
    .bind(from)
    .bind(to)
    .bind(span.slot_ms())
    .fetch_all(&mut **tx)
    .await?;
    for (platform, model, key, kind, requests, tokens, last_ms) in slots {
        if let Some((kind, amount)) = amount(&kind, requests, tokens) {
            let id = CandidateId::new(&platform, &model, &key);
            quotas.restore(&id, Timestamp(last_ms), span, kind, amount);
        }
    }
    Ok(())
}

/// Counts what replicas other than `me` have written since the last call.
pub(super) async fn follow(
    store: &Store,
    quotas: &Quotas,
    me: &str,
    read: &mut Heads,
) -> Result<(), sqlx::Error> {
    let heads = heads(store.lookup()).await?;
    for (replica, head) in &heads.0 {
        let from = read.0.get(replica).copied().unwrap_or(0);
        if *head <= from || replica == me {
            continue;
        }
        let rows: Vec<(String, String, String, String, i64, i64)> = sqlx::query_as(
            "SELECT platform, model_id, key_id, kind, COUNT(*), CAST(SUM(tokens) AS BIGINT)
             FROM rate_limit_usage WHERE replica = $1 AND seq > $2 AND seq <= $3
             GROUP BY platform, model_id, key_id, kind",
        )
        .bind(replica.clone())
        .bind(from)
        .bind(*head)
        .fetch_all(store.read())
        .await?;
        for (platform, model, key, kind, requests, tokens) in rows {
            if let Some((kind, amount)) = amount(&kind, requests, tokens) {
                quotas.count_elsewhere(&CandidateId::new(&platform, &model, &key), kind, amount);
            }
        }
        read.0.insert(replica.clone(), *head);
    }
    // Of those whose rows are all pruned nothing old can come any more.
    read.0.retain(|replica, _| heads.0.contains_key(replica));
    Ok(())
}

/// How far each replica has written. Hops from one to the next in the index, however many rows each has.
async fn heads<'e>(db: impl Executor<'e, Database = Any>) -> Result<Heads, sqlx::Error> {
    let heads: Vec<(String, Option<i64>)> = sqlx::query_as(
        "WITH RECURSIVE writers (id) AS (
           SELECT MIN(replica) FROM rate_limit_usage WHERE replica > ''
           UNION ALL
           SELECT (SELECT MIN(u.replica) FROM rate_limit_usage u WHERE u.replica > w.id)
           FROM writers w WHERE w.id IS NOT NULL
         )
         SELECT w.id, (SELECT MAX(u.seq) FROM rate_limit_usage u WHERE u.replica = w.id)
         FROM writers w WHERE w.id IS NOT NULL",
    )
    .fetch_all(db)
    .await?;
    Ok(Heads(heads.into_iter().map(|(replica, head)| (replica, head.unwrap_or(0))).collect()))
}

/// What rows of one kind count; nothing where others made the kind up.
fn amount(kind: &str, requests: i64, tokens: i64) -> Option<(WindowKind, u64)> {
    WindowKind::parse(kind).map(|kind| match kind {
        WindowKind::Request => (kind, to_u64(requests)),
        WindowKind::Tokens => (kind, to_u64(tokens)),
    })
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
