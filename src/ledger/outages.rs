//! What an outage of the database costs: nothing that was answered, nothing twice, and no long waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::clock::ManualClock;
use crate::limits::{BudgetMode, Limiter, MemoryStore, Who};
use crate::model::limit::Defaults;
use crate::model::{Limit, Timestamp, Usage};
use crate::store::DatabaseUrl;
use crate::store::flaky::{Flaky, State};
use crate::store::testing::{Fresh, fresh, postgres_address};

fn clock() -> SharedClock {
    ManualClock::new(Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap())
}

/// One request of 10 tokens, as the pool and the limiter settle it.
fn settlement(clock: &SharedClock) -> Settlement {
    let usage = StepUsage::reported(Usage { input_tokens: 7, output_tokens: 3 });
    let row = WindowRow {
        platform: "p".into(),
        model_id: "m".into(),
        key_id: "k".into(),
        kind: WindowKind::Tokens,
        tokens: 10,
        created_at: clock.now(),
    };
    Settlement {
        workspace: "acme".into(),
        user: "eve".into(),
        route: Route::Chat,
        parts: vec![("m".into(), usage)],
        window_row: Some(row),
    }
}

/// Requests in the ledger, and rows in the windows.
async fn recorded(store: &Store) -> (u64, i64) {
    let totals = read::totals(store).await.unwrap();
    let rows: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM rate_limit_usage").fetch_one(store.read()).await.unwrap();
    (totals.iter().map(|row| row.requests).sum(), rows)
}

/// A store whose PostgreSQL can be taken away; none where tests run on SQLite, which can't go.
async fn flaky() -> Option<(Fresh, Store, Flaky)> {
    let fresh = fresh().await;
    let address = postgres_address(&fresh.store)?;
    let (scheme, rest) = address.split_once("://").unwrap();
    let (user, rest) = rest.rsplit_once('@').unwrap();
    let (server, database) = rest.split_once('/').unwrap();
    let flaky = Flaky::before(server.to_owned()).await;
    let through = format!("{scheme}://{user}@{}/{database}", flaky.address);
    let store = Store::open(&DatabaseUrl::parse(&through).unwrap()).await.unwrap();
    Some((fresh, store, flaky))
}

#[tokio::test]
async fn admission_fails_fast_while_postgres_is_away_and_works_when_it_is_back() {
    let Some((_fresh, store, flaky)) = flaky().await else { return };
    let clock = clock();
    let ledger = Ledger::start(store.clone(), clock.clone());
    let defaults = Defaults { rate: Limit::from_number(1_000), budget: Limit::from_number(1_000_000) };
    let rates = Arc::new(MemoryStore::default());
    let limiter = Limiter::new(store.clone(), clock, ledger, rates, defaults, BudgetMode::Gate);
    let admit = async || {
        let who = Who { workspace: "acme".into(), user: "eve".into() };
        let begun = Instant::now();
        (limiter.admit(who, Route::Chat, 0).await.map(drop), begun.elapsed())
    };
    for away in [State::Hung, State::Gone] {
        // All connections of the pool are in use once, so that they all are stale afterwards.
        let many =
            (0..40).map(|_| async { sqlx::query("SELECT pg_sleep(0.02)").execute(store.read()).await });
        futures::future::join_all(many).await.into_iter().for_each(|slept| assert!(slept.is_ok()));
        admit().await.0.unwrap();
        flaky.set(away);
        for _ in 0..2 {
            let (admitted, took) = admit().await;
            let error = admitted.unwrap_err();
            assert_eq!((error.status(), error.retry_after_s()), (503, Some(2)), "{away:?}: {error}");
            assert!(took < Duration::from_millis(1_500), "{away:?}: {took:?}");
        }
        flaky.set(State::Up);
        let begun = Instant::now();
        while admit().await.0.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(5), "{away:?}: it doesn't come back");
        }
        for n in 0..50 {
            admit().await.0.unwrap_or_else(|error| panic!("{away:?}: stale at {n}: {error}"));
        }
    }
}

#[tokio::test]
async fn what_was_used_during_an_outage_is_written_after_it_once() {
    let Some((_fresh, store, flaky)) = flaky().await else { return };
    let clock = clock();
    let ledger = Ledger::start(store.clone(), clock.clone());
    for (round, away) in [State::Hung, State::Gone].into_iter().enumerate() {
        flaky.set(away);
        let settled: Vec<_> = (0..20)
            .map(|_| {
                let (ledger, settlement) = (ledger.clone(), settlement(&clock));
                tokio::spawn(async move { ledger.settle(settlement).await })
            })
            .collect();
        // Long enough for several tries.
        tokio::time::sleep(Duration::from_millis(700)).await;
        flaky.set(State::Up);
        for one in settled {
            one.await.unwrap().unwrap();
        }
        let n = 20 * (round as u64 + 1);
        assert_eq!(recorded(&store).await, (n, n.cast_signed()), "{away:?}");
    }
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_not_made_twice() {
    let Some((_fresh, store, flaky)) = flaky().await else { return };
    let clock = clock();
    let ledger = Ledger::start(store.clone(), clock.clone());
    ledger.settle(settlement(&clock)).await.unwrap();
    for n in 2..5_u64 {
        flaky.set(State::LosesCommit);
        ledger.settle(settlement(&clock)).await.unwrap();
        assert!(flaky.is(State::Up), "an answer was lost");
        assert_eq!(recorded(&store).await, (n, n.cast_signed()));
    }
}

#[tokio::test]
async fn what_one_replica_writes_the_others_announce() {
    let fresh = fresh().await;
    let clock = clock();
    let [here, there] = [(); 2].map(|()| Ledger::start(fresh.store.clone(), clock.clone()));
    let announcing = there.clone().announce_what_others_write(fresh.store.changes(), clock.clone());
    let announcing = tokio::spawn(announcing);
    let mut changes = there.changes();
    // The first look of all is said too.
    changes.changed().await.unwrap();
    for _ in 0..3 {
        changes.mark_unchanged();
        here.settle(settlement(&clock)).await.unwrap();
        // Pages then wait 400 ms at most, and promise two seconds.
        tokio::time::timeout(Duration::from_millis(1_500), changes.changed()).await.unwrap().unwrap();
    }
    announcing.abort();
}

#[tokio::test]
async fn a_locked_sqlite_database_loses_nothing() {
    use sqlx::{Connection as _, Executor as _};

    let fresh = fresh().await;
    if postgres_address(&fresh.store).is_some() {
        return;
    }
    let clock = clock();
    let ledger = Ledger::start(fresh.store.clone(), clock.clone());
    let path = format!("sqlite://{}", fresh.folder.path().join("x.db").display());
    let mut other = sqlx::SqliteConnection::connect(&path).await.unwrap();
    other.execute("BEGIN EXCLUSIVE").await.unwrap();
    let settled = {
        let (ledger, settlement) = (ledger.clone(), settlement(&clock));
        tokio::spawn(async move { ledger.settle(settlement).await })
    };
    ledger.count_refusal(&"acme".into(), Refused::Rate);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!settled.is_finished(), "it is not told as recorded");
    assert_eq!(recorded(&fresh.store).await, (0, 0), "reading goes on");
    other.execute("ROLLBACK").await.unwrap();
    settled.await.unwrap().unwrap();
    ledger.flush().await;
    assert_eq!(recorded(&fresh.store).await, (1, 1));
    let refused: i64 =
        sqlx::query_scalar("SELECT refused FROM llm_refusals").fetch_one(fresh.store.read()).await.unwrap();
    assert_eq!(refused, 1);
}
