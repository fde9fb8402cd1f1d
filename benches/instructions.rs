//! Instructions that the two decisions of every request execute, counted under Valgrind: the same
//! number on every run and every machine of the same kind. docs/performance.md says how to run it.

use std::hint::black_box;
use std::sync::Arc;

use futures::FutureExt as _;
use gungraun::{library_benchmark, library_benchmark_group, main};
use tollkeeper::clock::ManualClock;
use tollkeeper::ledger::WindowRow;
use tollkeeper::limits::{Ask, BudgetAsk, MemoryStore, RateLimitStore, Reading, Release, Verdict};
use tollkeeper::model::{Limit, Timestamp};
use tollkeeper::providers::{CandidateId, Quotas, Standing, UsageSink};

/// 2026-09-20T10:00:00Z.
const NOW: Timestamp = Timestamp(1_789_898_400_000);

fn ask(budget: BudgetAsk) -> Ask {
    Ask { workspace: "acme".into(), user: "u_0001".into(), now: NOW, rate: Limit::Of(1_000_000), budget }
}

const GATE: BudgetAsk = BudgetAsk::Gate { limit: 2_000_000, used: 1_000_000 };
const RESERVE: BudgetAsk =
    BudgetAsk::Reserve { limit: 2_000_000, used: 1_000_000, estimate: 1_000, reading: Reading(1) };
const SPENT: BudgetAsk = BudgetAsk::Gate { limit: 2_000_000, used: 2_000_000 };

/// A store in which this many users have buckets, the one who asks among them, and this many calls are in flight.
fn warm(users: u32, in_flight: u32, budget: BudgetAsk) -> (MemoryStore, Ask) {
    let store = MemoryStore::default();
    for user in 0..users {
        let ask = Ask { user: format!("u_{user:04}").as_str().into(), ..ask(GATE) };
        decide(&store, &ask);
    }
    (0..in_flight).for_each(|_| {
        decide(&store, &ask(RESERVE));
    });
    (store, ask(budget))
}

/// The store's futures are ready at once: there is nothing to wait for in memory.
fn decide(store: &MemoryStore, ask: &Ask) -> Verdict {
    let decision = store.decide(ask).now_or_never().expect("decided at once");
    decision.expect("memory does not fail").verdict
}

#[library_benchmark]
#[bench::gate(warm(1, 0, GATE))]
#[bench::gate_among_1000_users(warm(1_000, 0, GATE))]
#[bench::refused_by_budget(warm(1, 0, SPENT))]
#[bench::reserve(warm(1, 0, RESERVE))]
#[bench::reserve_beside_100_in_flight(warm(1, 100, RESERVE))]
fn admission((store, ask): (MemoryStore, Ask)) -> (Verdict, MemoryStore) {
    let verdict = decide(black_box(&store), black_box(&ask));
    (verdict, store)
}

#[library_benchmark]
#[bench::one(warm(1, 0, RESERVE))]
fn admission_and_release((store, ask): (MemoryStore, Ask)) -> MemoryStore {
    if let Verdict::Admitted { reservation: Some(id) } = decide(black_box(&store), black_box(&ask)) {
        let how = Release::Settled { tokens: 900, committed: Reading(2) };
        store.release(&ask.workspace, id, how, NOW).now_or_never().expect("released at once");
    }
    store
}

/// Rows go nowhere: what is counted in memory is what is measured.
struct Nowhere;

impl UsageSink for Nowhere {
    fn record(&self, _: Vec<WindowRow>) {}
}

/// A candidate with this many calls behind it, spread evenly over the last day; the minute has its part of them.
fn after(calls: i64) -> (Quotas, CandidateId) {
    let day = 86_400_000;
    let clock = ManualClock::new(Timestamp(NOW.ms() - day + 1));
    let quotas = Quotas::new(clock.clone(), Arc::new(Nowhere));
    let id = CandidateId::new("alpha", "model", "key");
    for n in 1..=calls {
        clock.set(Timestamp(NOW.ms() - day + 1 + n * (day - 2) / calls));
        quotas.record_request(&id);
        quotas.record_tokens(&id, 1_000);
    }
    // The first look drops what has passed since the last record, as every look before it did.
    let _ = quotas.status(&id);
    (quotas, id)
}

#[library_benchmark]
#[bench::after_1(after(1))]
#[bench::after_1000(after(1_000))]
#[bench::after_100000(after(100_000))]
fn window_check((quotas, id): (Quotas, CandidateId)) -> (Option<Standing>, Quotas, CandidateId) {
    let standing = black_box(&quotas).status(black_box(&id));
    (standing, quotas, id)
}

library_benchmark_group!(name = decisions, benchmarks = [admission, admission_and_release, window_check]);

main!(library_benchmark_groups = decisions);
