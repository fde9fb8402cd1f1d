//! A large installation: 10,000 workspaces, 300,000 rows of usage, windows and trail.

use sqlx::AssertSqlSafe;

use crate::model::{Day, Timestamp};
use crate::store::Store;

const ROWS: u32 = 300_000;

/// Up to 2026-09-20, the tests' today: the ledger over 360 days, the windows over 30, the trail over a year.
pub(super) async fn fill(store: &Store) {
    let today = Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap();
    let days: Vec<String> =
        (0..360).map(|back| format!("({back}, date('{}'))", Day(today.day().0 - back).ymd())).collect();
    let numbers =
        format!("WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {})", ROWS - 1);
    let numbers_and_days = format!("{numbers}, d (back, day) AS (VALUES {})", days.join(", "));
    let end = today.ms();
    let statements = [
        format!("INSERT INTO workspaces (id, name, created_at_ms) {numbers} SELECT 'w' || i, 'Workspace ' || i, 0 FROM n WHERE i < 10000"),
        format!("INSERT INTO workspace_limits (workspace_id, daily_token_budget) {numbers} SELECT 'w' || (i * 10), 1000 + i FROM n WHERE i < 1000"),
        format!("INSERT INTO users (id, email, created_at_ms) {numbers} SELECT 'u' || i, 'user' || i || '@example.com', 0 FROM n WHERE i < 5000"),
        format!("INSERT INTO llm_usage (workspace_id, day, route, model, input_tokens, output_tokens, requests)
            {numbers_and_days} SELECT 'w' || (i % 10000), day, 'chat', 'model-' || (i % 3), i % 1000, 10, 1
            FROM n JOIN d ON d.back = (i / 10000) * 12 + i % 12"),
        "INSERT INTO llm_usage_totals (workspace_id, route, model, input_tokens, output_tokens, requests)
            SELECT workspace_id, route, model, SUM(input_tokens), SUM(output_tokens), SUM(requests) FROM llm_usage
            GROUP BY workspace_id, route, model".into(),
        format!("INSERT INTO llm_usage_by_user (workspace_id, day, user_id, input_tokens, output_tokens, requests)
            {numbers_and_days} SELECT 'w' || (i % 10000), day, 'u' || (i % 5000), 1, 1, 1
            FROM n JOIN d ON d.back = (i / 10000) * 12 + i % 12"),
        format!("INSERT INTO llm_refusals (workspace_id, day, kind, refused)
            {numbers_and_days} SELECT 'w' || (i % 10000), day, 'rate', 1 FROM n JOIN d ON d.back = (i / 10000) * 12 + i % 12"),
        format!("INSERT INTO rate_limit_usage (platform, model_id, key_id, kind, tokens, created_at_ms, replica, seq)
            {numbers} SELECT 'p', 'm' || (i % 20), 'k' || (i % 5), CASE i % 2 WHEN 0 THEN 'request' ELSE 'tokens' END, i % 2, {end} - i * CAST(8640 AS BIGINT), 'r' || (i % 3), i / 3 FROM n"),
        format!("INSERT INTO audit_log (id, at_ms, actor, action, workspace_id, previous_hash, hash)
            {numbers} SELECT i + 1, {end} - ({ROWS} - i) * CAST(100000 AS BIGINT), 'user' || (i % 5000) || '@example.com', 'limits.set', 'w' || (i % 10000), '', '' FROM n"),
    ];
    let mut tx = store.begin_long().await.unwrap();
    let tables = store.tables(&mut tx).await.unwrap();
    let resting = store.rest_triggers(&mut tx, &tables).await.unwrap();
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut *tx).await.unwrap();
    }
    store.wake_triggers(&mut tx, resting).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = store.begin_long().await.unwrap();
    sqlx::query("ANALYZE").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    store.close().await;
}
