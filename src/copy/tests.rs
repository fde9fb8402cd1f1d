//! From and to the engine that `TEST_ENGINE` names; the other end is SQLite.

use std::path::PathBuf;

use serde_json::json;
use sqlx::AssertSqlSafe;
use tokio::sync::Notify;

use super::*;
use crate::audit::{Actor, Change, append};
use crate::model::Timestamp;
use crate::store::testing::{Dump, dump, place, unlock_audit_trail};

struct Fresh {
    store: Store,
    url: DatabaseUrl,
    _folder: tempfile::TempDir,
}

async fn fresh() -> Fresh {
    let (url, folder) = place().await;
    Fresh { store: Store::open(&url).await.unwrap(), url, _folder: folder }
}

async fn sqlite() -> Fresh {
    let folder = tempfile::tempdir().unwrap();
    let url = DatabaseUrl::Sqlite(folder.path().join("source.db"));
    Fresh { store: Store::open(&url).await.unwrap(), url, _folder: folder }
}

async fn execute(store: &Store, sql: String) {
    let mut tx = store.begin().await.unwrap();
    sqlx::query(AssertSqlSafe(sql)).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

async fn record(store: &Store, n: i64) {
    let mut tx = store.begin().await.unwrap();
    let change = Change {
        actor: &Actor::Cli,
        action: "limits.set",
        workspace: Some(&"acme".into()),
        before: None,
        after: Some(json!({ "rate_per_minute": n })),
    };
    append(&mut tx, Timestamp(1_790_000_000_000 + n), change).await.unwrap();
    tx.commit().await.unwrap();
}

/// Two rows in every table but the trail, whichever columns it has: odd texts and nulls in the second where
/// they are allowed. The ledger's totals come by their trigger.
async fn populate(store: &Store) {
    let tables = {
        let mut tx = store.snapshot().await.unwrap();
        store.tables(&mut tx).await.unwrap()
    };
    for Table { name, columns } in &tables {
        if name == "audit_log" || name == "llm_usage_totals" || BORN_WITH_ROWS.contains(&name.as_str()) {
            continue;
        }
        for row in 1..=2 {
            let value = |column: &Column| match (column.name.as_str(), column.kind) {
                ("day", _) => format!("'2026-11-0{row}'"),
                ("updated_at", _) => format!("'2026-11-0{row} 10:00:00'"),
                (name, Kind::Integer) if name.ends_with("_ms") => format!("{}", 1_790_000_000_000_i64 + row),
                (_, Kind::Integer) => row.to_string(),
                // An id, or what refers to one.
                _ if row == 1 => "'Zürich, \"x\" \\ '' %'".to_owned(),
                _ => "'id-2'".to_owned(),
            };
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            let values: Vec<String> = columns.iter().map(value).collect();
            execute(
                store,
                format!("INSERT INTO {name} ({}) VALUES ({})", names.join(", "), values.join(", ")),
            )
            .await;
        }
    }
    for optional in [
        "UPDATE workspace_limits SET rate_per_minute = NULL WHERE workspace_id = 'id-2'",
        "UPDATE sessions SET user_id = NULL WHERE id_hash = 'id-2'",
        "UPDATE sources SET inline_rows = NULL WHERE id = 'id-2'",
        "UPDATE pool_version SET version = 41",
    ] {
        execute(store, optional.to_owned()).await;
    }
    for n in 1..=3 {
        record(store, n).await;
    }
}

/// What both engines say alike: rows as JSON by their columns' text, times left out.
async fn told(store: &Store) -> Dump {
    let tables = {
        let mut tx = store.snapshot().await.unwrap();
        store.tables(&mut tx).await.unwrap()
    };
    let mut told = Dump::new();
    for Table { name, columns } in tables {
        if NOT_COPIED.contains(&name.as_str()) {
            continue;
        }
        let columns: Vec<String> = columns
            .iter()
            .filter(|column| column.name != "updated_at")
            .map(|column| format!("COALESCE(CAST(\"{}\" AS TEXT), 'null')", column.name))
            .collect();
        let sql = format!("SELECT {} FROM {name}", columns.join(" || '|' || "));
        let mut rows: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(store.read()).await.unwrap();
        rows.sort();
        told.insert(name, rows);
    }
    told
}

async fn copied(from: &Fresh, to: &Fresh) -> Result<Copied, String> {
    copy(&from.url, &to.url, |_, _| {}).await
}

fn files(fresh: &Fresh) -> Vec<(PathBuf, Vec<u8>)> {
    let DatabaseUrl::Sqlite(path) = &fresh.url else { return Vec::new() };
    vec![(path.clone(), std::fs::read(path).unwrap())]
}

async fn everything_arrives(source: Fresh, target: Fresh) {
    populate(&source.store).await;
    let before = told(&source.store).await;
    for (table, rows) in &before {
        assert!(!rows.is_empty(), "no row was made in {table}");
    }
    let (content, bytes) = (dump(&source.store).await, files(&source));
    let copied = copied(&source, &target).await.unwrap();
    assert_eq!(told(&target.store).await, before);
    assert_eq!((copied.audit_entries, copied.has_sealed_keys()), (3, true));
    assert_eq!(copied.tables.iter().map(|(table, _)| table).collect::<Vec<_>>().len(), before.len());

    assert_eq!(dump(&source.store).await, content, "the source was changed");
    assert_eq!(files(&source), bytes, "the source's file was changed");

    // What the triggers see to goes on.
    record(&target.store, 4).await;
    let mut tx = target.store.begin().await.unwrap();
    assert!(sqlx::query("DELETE FROM audit_log").execute(&mut *tx).await.is_err());
    tx.rollback().await.unwrap();
    execute(
        &target.store,
        "INSERT INTO llm_usage VALUES ('id-2', '2026-12-01', 'id-2', 'id-2', 10, 0, 0, 0, 0)".into(),
    )
    .await;
    let total: i64 =
        sqlx::query_scalar("SELECT input_tokens FROM llm_usage_totals WHERE workspace_id = 'id-2'")
            .fetch_one(target.store.read())
            .await
            .unwrap();
    assert_eq!(total, 12);
}

#[tokio::test]
async fn everything_arrives_from_sqlite() {
    everything_arrives(sqlite().await, fresh().await).await;
}

#[tokio::test]
async fn everything_arrives_at_sqlite() {
    everything_arrives(fresh().await, sqlite().await).await;
}

#[tokio::test]
async fn times_stay_the_same_instant() {
    let (source, target) = (sqlite().await, fresh().await);
    for (id, at) in [("a", "2026-11-01T10:00:00.123Z"), ("b", "2026-11-01 10:00:00")] {
        execute(
            &source.store,
            format!("INSERT INTO workspace_limits (workspace_id, updated_at) VALUES ('{id}', '{at}')"),
        )
        .await;
    }
    copied(&source, &target).await.unwrap();
    // And back, where they are text again.
    let back = sqlite().await;
    copied(&target, &back).await.unwrap();
    let times: Vec<String> =
        sqlx::query_scalar("SELECT updated_at FROM workspace_limits ORDER BY workspace_id")
            .fetch_all(back.store.read())
            .await
            .unwrap();
    let ms: Vec<Option<i64>> = times
        .iter()
        .map(|at| {
            Timestamp::parse_rfc3339(&at.replace(' ', "T"))
                .or_else(|| Timestamp::parse_rfc3339(&format!("{}Z", at.replace(' ', "T"))))
                .map(Timestamp::ms)
        })
        .collect();
    let instant = |text| Timestamp::parse_rfc3339(text).map(Timestamp::ms);
    assert_eq!(ms, [instant("2026-11-01T10:00:00.123Z"), instant("2026-11-01T10:00:00Z")]);
}

#[tokio::test]
async fn a_target_that_holds_data_is_refused_by_the_table_s_name() {
    let (source, target) = (sqlite().await, fresh().await);
    populate(&source.store).await;
    execute(&target.store, "INSERT INTO workspaces VALUES ('acme', 'Acme', 0, 0)".into()).await;
    let before = dump(&target.store).await;
    let refused = copied(&source, &target).await.unwrap_err();
    assert!(refused.starts_with("--to: ") && refused.contains("the table workspaces"), "{refused}");
    assert_eq!(dump(&target.store).await, before);
}

#[tokio::test]
async fn an_interrupted_copy_leaves_nothing_and_is_begun_again() {
    let (source, target) = (sqlite().await, fresh().await);
    populate(&source.store).await;
    let before = dump(&target.store).await;
    let halfway = Notify::new();
    tokio::select! {
        biased;
        () = halfway.notified() => {}
        done = copy(&source.url, &target.url, |table, _| if table == "llm_usage" { halfway.notify_one() }) =>
            panic!("it came to its end: {done:?}"),
    }
    assert_eq!(dump(&target.store).await, before);
    copied(&source, &target).await.unwrap();
    assert_eq!(told(&target.store).await, told(&source.store).await);
}

#[tokio::test]
async fn the_copy_is_of_the_instant_at_which_it_began() {
    let (source, target) = (fresh().await, sqlite().await);
    populate(&source.store).await;
    let before = told(&source.store).await;
    let reader = Store::open_unchanged(&source.url).await.unwrap();
    let mut snapshot = reader.long_snapshot().await.unwrap();
    record(&source.store, 9).await;
    execute(&source.store, "UPDATE llm_usage SET requests = requests + 5".into()).await;
    assert_ne!(told(&source.store).await, before);
    copy_snapshot(&reader, &mut snapshot, &target.url, |_, _| {}).await.unwrap();
    assert_eq!(told(&target.store).await, before);
}

#[tokio::test]
async fn a_row_that_is_lost_or_changed_on_the_way_is_noticed() {
    let (source, target) = (sqlite().await, fresh().await);
    populate(&source.store).await;
    for (harm, noticed) in [
        (
            "DELETE FROM llm_refusals WHERE workspace_id = 'id-2'",
            "llm_refusals has 1 rows at the target, and 2 were sent",
        ),
        (
            "UPDATE llm_usage_by_user SET requests = requests + 1 WHERE workspace_id = 'id-2'",
            "llm_usage_by_user reads differently",
        ),
        ("UPDATE sources SET inline_rows = '' WHERE inline_rows IS NULL", "sources reads differently"),
    ] {
        let mut snapshot = source.store.long_snapshot().await.unwrap();
        let mut tx = target.store.begin_long().await.unwrap();
        let tables = target.store.tables(&mut tx).await.unwrap();
        must_be_empty(&mut tx, &tables).await.unwrap();
        let sent =
            write(&source.store, &mut snapshot, &target.store, &mut tx, &tables, |_, _| {}).await.unwrap();
        check(&target.store, &mut tx, &tables, &sent).await.unwrap();
        sqlx::query(harm).execute(&mut *tx).await.unwrap();
        let refused = check(&target.store, &mut tx, &tables, &sent).await.unwrap_err();
        assert!(refused.contains(noticed), "{refused}");
    }
}

#[tokio::test]
async fn a_forged_trail_is_not_passed_on() {
    let (source, target) = (sqlite().await, fresh().await);
    populate(&source.store).await;
    unlock_audit_trail(&source.store).await;
    execute(&source.store, "UPDATE audit_log SET actor = 'nobody' WHERE id = 2".into()).await;
    let before = dump(&target.store).await;
    let refused = copied(&source, &target).await.unwrap_err();
    assert!(refused.contains("the audit trail is broken at entry 2"), "{refused}");
    assert_eq!(dump(&target.store).await, before);
}

#[tokio::test]
async fn a_row_that_the_other_engine_does_not_take_is_named() {
    let (source, target) = (sqlite().await, fresh().await);
    execute(&source.store, "INSERT INTO llm_usage (workspace_id, day, route, model) VALUES ('acme', 'yesterday-ish', 'chat', 'm')".into())
        .await;
    let done = copied(&source, &target).await;
    if target.store.engine() == crate::store::Engine::Postgres {
        let refused = done.unwrap_err();
        assert!(refused.starts_with("--to: the table llm_usage does not take a row"), "{refused}");
    } else {
        assert_eq!(told(&target.store).await, told(&source.store).await);
    }
}

#[tokio::test]
async fn a_source_that_is_missing_or_not_of_this_version_is_left_alone() {
    let target = fresh().await;
    let folder = tempfile::tempdir().unwrap();
    let missing = DatabaseUrl::Sqlite(folder.path().join("none.db"));
    let refused = copy(&missing, &target.url, |_, _| {}).await.unwrap_err();
    assert!(refused.starts_with("--from: there is no SQLite database at "), "{refused}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    let refused = copy(&DatabaseUrl::Sqlite(empty.clone()), &target.url, |_, _| {}).await.unwrap_err();
    assert!(refused.starts_with("--from: the database is not one of Tollkeeper's"), "{refused}");
    assert_eq!(std::fs::read(&empty).unwrap(), b"");

    let source = fresh().await;
    execute(&source.store, "UPDATE _sqlx_migrations SET version = 999 WHERE version = 1".into()).await;
    let refused = copied(&source, &target).await.unwrap_err();
    assert!(refused.contains("of another version"), "{refused}");
    execute(&source.store, "DELETE FROM _sqlx_migrations".into()).await;
    let refused = copied(&source, &target).await.unwrap_err();
    assert!(refused.contains("`tollkeeper migrate` brings it up to date"), "{refused}");
}

#[tokio::test]
async fn only_the_tables_that_are_known_for_it_are_born_with_rows() {
    for fresh in [fresh().await, sqlite().await] {
        let born: Vec<String> = dump(&fresh.store)
            .await
            .into_iter()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(table, _)| table)
            .collect();
        assert_eq!(born, BORN_WITH_ROWS);
    }
}
