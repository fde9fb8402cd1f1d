//! What the database takes of a request, by the clock on the wall: SQLite's connections are threads
//! of their own, whose instructions say little. docs/performance.md says what it came to.

use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use futures::future::join_all;
use tokio::runtime::Runtime;
use tollkeeper::clock::{Clock as _, ManualClock, SystemClock};
use tollkeeper::ledger::{Ledger, Settlement, StepUsage};
use tollkeeper::limits::{BudgetMode, Limiter, MemoryStore, Who, overrides};
use tollkeeper::model::limit::Defaults;
use tollkeeper::model::{Limit, Route, Timestamp, Usage};
use tollkeeper::store::{DatabaseUrl, Store};

fn settlement() -> Settlement {
    let usage = StepUsage::reported(Usage { input_tokens: 700, output_tokens: 300 });
    Settlement {
        workspace: "acme".into(),
        user: "u_ada".into(),
        route: Route::Openai,
        parts: vec![("model".into(), usage)],
        window_rows: Vec::new(),
    }
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder for the database");
    let runtime = Runtime::new().expect("a runtime");
    let url = DatabaseUrl::Sqlite(folder.path().join("bench.db"));
    let store = runtime.block_on(Store::open(&url)).expect("a database");
    let clock = Arc::new(SystemClock);
    let _running = runtime.enter();
    let ledger = Ledger::start(store.clone(), clock.clone());
    // A day's total is summed over the rows of the day: one a route and model.
    runtime.block_on(async {
        for model in 0..20 {
            let mut one = settlement();
            one.parts[0].0 = format!("model-{model}");
            ledger.settle(one).await.expect("written");
        }
    });

    let mut criterion = Criterion::default()
        .configure_from_args()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4));

    let day = clock.now().day();
    let workspace = "acme".into();
    criterion.bench_function("read of overrides and day's total", |bencher| {
        bencher
            .to_async(&runtime)
            .iter(async || overrides::current(&store, &workspace, day).await.expect("a reading"));
    });

    let limiter = Limiter::new(
        store.clone(),
        ManualClock::new(Timestamp(clock.now().ms())),
        ledger.clone(),
        Arc::new(MemoryStore::default()),
        Defaults { rate: Limit::Disabled, budget: Limit::Of(9_007_199_254_740_991) },
        BudgetMode::Gate,
    );
    let who = Who { workspace: "acme".into(), user: "u_ada".into() };
    for at_once in [1_usize, 50] {
        let mut group = criterion.benchmark_group("admission with its read");
        group.throughput(Throughput::Elements(at_once as u64));
        group.bench_function(BenchmarkId::from_parameter(at_once), |bencher| {
            bencher.to_async(&runtime).iter(|| {
                join_all((0..at_once).map(async |_| {
                    limiter.admit(who.clone(), Route::Openai, 0).await.expect("admitted").settle().await
                }))
            });
        });
        group.finish();
    }

    for group_of in [1_usize, 50] {
        let mut group = criterion.benchmark_group("settle");
        group.throughput(Throughput::Elements(group_of as u64));
        group.bench_function(BenchmarkId::from_parameter(group_of), |bencher| {
            bencher.to_async(&runtime).iter_batched(
                || vec![settlement(); group_of],
                |all| join_all(all.into_iter().map(|one| ledger.settle(one))),
                BatchSize::SmallInput,
            );
        });
        group.finish();
    }
    criterion.final_summary();
    runtime.block_on(store.close());
}
