//! The gate over a real database: limits, overrides, ledger and refusals together.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;

use super::*;
use crate::audit::Actor;
use crate::clock::ManualClock;
use crate::ledger::{Ledger, StepUsage, read};
use crate::model::limit::{Defaults, Edit, LimitChange, Overrides};
use crate::model::{Error, Limit, Refusal, Route, Setting, Timestamp, Usage, WorkspaceId};
use crate::store::Store;
use crate::store::testing::{Fresh, fresh};

struct Gate {
    limiter: Limiter,
    ledger: Ledger,
    store: Store,
    clock: Arc<ManualClock>,
    _folder: tempfile::TempDir,
}

async fn gate(rate: u64, budget: u64, mode: BudgetMode) -> Gate {
    let Fresh { store, folder } = fresh().await;
    run(&store, "INSERT INTO workspaces (id, name, created_at_ms) VALUES ('acme', 'Acme', 0)").await;
    let clock = ManualClock::new(Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap());
    let ledger = Ledger::start(store.clone(), clock.clone());
    let defaults = Defaults { rate: Limit::from_number(rate), budget: Limit::from_number(budget) };
    let rates = Arc::new(MemoryStore::default());
    let limiter = Limiter::new(store.clone(), clock.clone(), ledger.clone(), rates, defaults, mode);
    Gate { limiter, ledger, store, clock, _folder: folder }
}

async fn run(store: &Store, sql: &'static str) {
    let mut tx = store.begin().await.unwrap();
    sqlx::query(sql).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

fn eve() -> Who {
    Who { workspace: "acme".into(), user: "eve".into() }
}

fn used(input: u64, output: u64) -> StepUsage {
    StepUsage::reported(Usage { input_tokens: input, output_tokens: output })
}

impl Gate {
    async fn admit(&self, estimate: u64) -> Result<Admission, Refusal> {
        match self.limiter.admit(eve(), Route::Chat, estimate).await {
            Ok(admission) => Ok(admission),
            Err(Error::Refused(refusal)) => Err(*refusal),
            Err(error) => panic!("{error}"),
        }
    }

    /// A whole request that uses so many input tokens.
    async fn request(&self, tokens: u64) -> Result<(), Refusal> {
        let admission = self.admit(tokens).await?;
        admission.meter().add("m", used(tokens, 0));
        admission.settle().await.unwrap();
        Ok(())
    }

    async fn recorded(&self) -> Vec<(u64, u64, u64)> {
        read::totals(&self.store)
            .await
            .unwrap()
            .into_iter()
            .map(|row| (row.input_tokens, row.output_tokens, row.requests))
            .collect()
    }
}

#[tokio::test]
async fn usage_is_committed_when_settle_returns() {
    let gate = gate(20, 1_000, BudgetMode::Gate).await;
    let admission = gate.admit(0).await.unwrap();
    admission.meter().add("m", used(100, 10));
    admission.meter().add("m", StepUsage::estimated(Usage { input_tokens: 5, output_tokens: 1 }));
    admission.settle().await.unwrap();
    admission.settle().await.unwrap();
    let day = Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap().day();
    let rows = read::rows(&gate.store, Some(&"acme".into()), day, day).await.unwrap();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.input_tokens, row.output_tokens, row.requests), (105, 11, 1));
    assert_eq!((row.estimated_input_tokens, row.estimated_output_tokens), (5, 1));
}

#[tokio::test]
async fn a_request_that_used_nothing_is_not_entered_and_one_that_was_dropped_is() {
    let gate = gate(20, 1_000, BudgetMode::Gate).await;
    gate.admit(0).await.unwrap().settle().await.unwrap();
    assert_eq!(gate.recorded().await, []);
    let admission = gate.admit(0).await.unwrap();
    admission.meter().add("m", used(7, 3));
    drop(admission);
    assert!(gate.ledger.close(Duration::from_secs(10)).await);
    assert_eq!(gate.recorded().await, [(7, 3, 1)]);
}

#[tokio::test]
async fn an_edit_of_the_tables_holds_for_the_next_request() {
    let gate = gate(20, 1_000, BudgetMode::Gate).await;
    gate.request(10).await.unwrap();
    run(&gate.store, "INSERT INTO workspace_limits (workspace_id, rate_per_minute) VALUES ('acme', 1)").await;
    let refusal = gate.request(1).await.unwrap_err();
    assert_eq!(
        refusal.reason,
        crate::model::decision::Reason::Rate(crate::model::RateRefusal { limit: 1, wait_ms: 60_000 })
    );
    run(&gate.store, "UPDATE workspace_limits SET rate_per_minute = NULL, daily_token_budget = 10").await;
    assert!(gate.request(1).await.unwrap_err().sentence().contains("10 of 10 tokens used"));
    run(&gate.store, "UPDATE llm_usage SET input_tokens = 9").await;
    gate.request(1).await.unwrap();
    run(&gate.store, "DELETE FROM workspace_limits").await;
    gate.request(1).await.unwrap();
}

#[tokio::test]
async fn the_day_begins_anew_at_midnight() {
    let gate = gate(0, 100, BudgetMode::Gate).await;
    gate.request(120).await.unwrap();
    let refusal = gate.request(1).await.unwrap_err();
    assert_eq!(refusal.retry_at().rfc3339(), "2026-09-21T00:00:00.000Z");
    gate.clock.set(refusal.retry_at().plus_ms(-1));
    gate.request(1).await.unwrap_err();
    gate.clock.set(refusal.retry_at());
    gate.request(1).await.unwrap();
}

#[tokio::test]
async fn a_refused_wait_is_exact() {
    let gate = gate(7, 0, BudgetMode::Gate).await;
    for _ in 0..7 {
        gate.request(1).await.unwrap();
    }
    let retry_at = gate.request(1).await.unwrap_err().retry_at();
    gate.clock.set(retry_at.plus_ms(-1));
    gate.request(1).await.unwrap_err();
    gate.clock.set(retry_at);
    gate.request(1).await.unwrap();
}

#[tokio::test]
async fn refusals_are_counted_and_given_back_tokens_are_back() {
    let gate = gate(1, 0, BudgetMode::Gate).await;
    gate.admit(0).await.unwrap().give_back().await;
    gate.admit(0).await.unwrap();
    gate.admit(0).await.unwrap_err();
    gate.admit(0).await.unwrap_err();
    assert!(gate.ledger.close(Duration::from_secs(10)).await);
    let (kind, refused): (String, i64) =
        sqlx::query_as("SELECT kind, refused FROM llm_refusals").fetch_one(gate.store.read()).await.unwrap();
    assert_eq!((kind.as_str(), refused), ("rate", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_in_parallel_admit_exactly_the_limit() {
    let gate = Arc::new(gate(20, 0, BudgetMode::Gate).await);
    let barrier = Arc::new(Barrier::new(100));
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (gate, barrier) = (gate.clone(), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                gate.request(1).await.is_ok()
            })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        admitted += u32::from(task.await.unwrap());
    }
    assert_eq!(admitted, 20);
    assert_eq!(gate.recorded().await, [(20, 0, 20)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_reserve_mode_parallel_requests_never_pass_the_budget() {
    const BUDGET: u64 = 1_000;
    let gate = Arc::new(gate(0, BUDGET, BudgetMode::Reserve).await);
    let barrier = Arc::new(Barrier::new(40));
    let tasks: Vec<_> = (0..40_u64)
        .map(|n| {
            let (gate, barrier) = (gate.clone(), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                for round in 0..10 {
                    let estimate = 20 + (n * 7 + round * 13) % 60;
                    let Ok(admission) = gate.admit(estimate).await else { continue };
                    tokio::task::yield_now().await;
                    admission.meter().add("m", used(estimate / 2, estimate / 2 - n % 3));
                    admission.settle().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let (input, output, _) = gate.recorded().await[0];
    assert!(input + output <= BUDGET, "{}", input + output);
    assert!(input + output > BUDGET - 100, "what was reserved is given back: {}", input + output);
}

#[tokio::test]
async fn a_change_is_audited_once_and_an_unknown_workspace_is_refused() {
    let gate = gate(20, 0, BudgetMode::Gate).await;
    let workspace = WorkspaceId::from("acme");
    let set = LimitChange { rate: Some(Setting::Value(5)), budget: None };
    for _ in 0..2 {
        let after = overrides::change(&gate.store, Timestamp(0), &Actor::Cli, &workspace, set).await.unwrap();
        assert_eq!(after.rate, Setting::Value(5));
    }
    let entries = crate::audit::list(&gate.store, &crate::audit::Query { limit: 10, ..Default::default() })
        .await
        .unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].after["rate_per_minute"], 5);
    let unknown = overrides::change(&gate.store, Timestamp(0), &Actor::Cli, &"nope".into(), set).await;
    assert!(matches!(unknown, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn an_edit_of_what_has_changed_since_is_a_conflict_and_changes_nothing() {
    let gate = gate(20, 0, BudgetMode::Gate).await;
    let (workspace, at) = (WorkspaceId::from("acme"), Timestamp(0));
    let rate = |rate| Overrides { rate, budget: Setting::Inherit };
    let edit = |seen, wanted| Edit { seen: rate(seen), wanted: rate(wanted) };
    let first = edit(Setting::Inherit, Setting::Value(5));
    let after = overrides::edit(&gate.store, at, &Actor::Cli, &workspace, first).await.unwrap();
    assert_eq!(after, rate(Setting::Value(5)));
    let late = edit(Setting::Inherit, Setting::Disabled);
    let refused = overrides::edit(&gate.store, at, &Actor::Cli, &workspace, late).await.unwrap_err();
    assert_eq!(refused.status(), 409);
    let now = overrides::current(&gate.store, &workspace, at.day()).await.unwrap();
    assert_eq!(now.overrides, rate(Setting::Value(5)));
    let unknown = overrides::edit(&gate.store, at, &Actor::Cli, &"nope".into(), first).await.unwrap_err();
    assert_eq!(unknown.status(), 404);
}
