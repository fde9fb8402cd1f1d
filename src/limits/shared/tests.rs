//! Several replicas over one real Redis, which dies and comes back.

use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::Barrier;

use super::*;
use crate::clock::ManualClock;
use crate::ledger::{Ledger, StepUsage, read};
use crate::limits::{BudgetMode, Limiter, MemoryStore, Who};
use crate::model::limit::BUDGET_MAX;
use crate::model::limit::Defaults;
use crate::model::{Route, Usage};
use crate::redis::TEST_CLOCK;
use crate::redis::testing::{Server, until};
use crate::store::testing::{Fresh, fresh};

const NOW: Timestamp = Timestamp(5_000);

async fn set_clock(server: &Server, ms: i64) {
    let () = server.ask(&format!("SET test-clock {ms} EX 100")).await;
}

/// A replica that believes to be one of so many. Nothing is renewed unless the test does.
async fn replica(server: &Server, replicas: u32) -> SharedStore {
    SharedStore::new(server.connect().await, watch::channel(replicas).1, TEST_CLOCK)
}

fn ask(user: &str, rate: u64, budget: BudgetAsk) -> Ask {
    let (workspace, user) = ("acme".into(), user.into());
    Ask { workspace, user, now: NOW, rate: Limit::from_number(rate), budget }
}

fn reserve(used: u64, estimate: u64, reading: Reading) -> BudgetAsk {
    BudgetAsk::Reserve { limit: 1_000, used, estimate, reading }
}

async fn decide(store: &SharedStore, rate: u64, budget: BudgetAsk) -> Decision {
    store.decide(&ask("eve", rate, budget)).await.unwrap()
}

/// How many of so many requests one after the other are admitted.
async fn admitted(store: &SharedStore, rate: u64, of: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..of {
        let decision = decide(store, rate, BudgetAsk::Off).await;
        admitted += u32::from(matches!(decision.verdict, Verdict::Admitted { .. }));
    }
    admitted
}

fn id(decision: Decision) -> ReservationId {
    match decision.verdict {
        Verdict::Admitted { reservation: Some(id) } => id,
        other => panic!("{other:?}"),
    }
}

async fn up(store: &SharedStore) {
    until("Redis is up", || store.0.redis.mode() == Mode::Up).await;
}

#[derive(Debug, Clone)]
enum Step {
    /// User, rate, how the budget is held, budget, used, estimate.
    Ask(u8, u64, u8, u64, u64, u64),
    Clock(i64),
    Reading,
    /// The oldest reservation ends, having used so much; 0 is nothing.
    Release(u64),
    GiveBack(u8, u64),
    Peek(u8, u64),
}

fn steps(budgets: std::ops::Range<u8>, clock: std::ops::Range<i64>) -> impl Strategy<Value = Vec<Step>> {
    let rate = || prop_oneof![3 => 0_u64..30, 1 => Just(2_147_483_647)];
    let budget = || prop_oneof![4 => 0_u64..2_000, 1 => BUDGET_MAX - 3..=BUDGET_MAX];
    let step = prop_oneof![
        8 => (0..3_u8, rate(), budgets, budget(), budget(), budget())
            .prop_map(|(user, rate, mode, limit, used, estimate)| Step::Ask(user, rate, mode, limit, used, estimate)),
        3 => clock.prop_map(Step::Clock),
        1 => Just(Step::Reading),
        2 => prop_oneof![Just(0), 1..1_000_u64].prop_map(Step::Release),
        1 => (0..3_u8, 1..30_u64).prop_map(|(user, rate)| Step::GiveBack(user, rate)),
        1 => (0..3_u8, 1..30_u64).prop_map(|(user, rate)| Step::Peek(user, rate)),
    ];
    prop::collection::vec(step, 1..60)
}

/// Plays the steps to a store in Redis and to one in memory: they decide the same.
async fn agree(server: &Server, steps: Vec<Step>) {
    let () = server.ask("FLUSHALL").await;
    let (shared, memory) = (replica(server, 1).await, MemoryStore::default());
    let workspace = WorkspaceId::from("acme");
    let mut now = Timestamp(10_000_000);
    set_clock(server, now.ms()).await;
    let mut readings = (Reading(0), Reading(0));
    let mut open = Vec::new();
    for step in steps {
        let user = |n: u8| UserId::from(format!("u_{n}"));
        match step {
            Step::Ask(n, rate, mode, limit, used, estimate) => {
                let budget = |reading| match (mode, limit) {
                    (0, _) | (_, 0) => BudgetAsk::Off,
                    (1, _) => BudgetAsk::Gate { limit, used },
                    _ => BudgetAsk::Reserve { limit, used, estimate, reading },
                };
                let ask = |reading| Ask {
                    workspace: workspace.clone(),
                    user: user(n),
                    now,
                    rate: Limit::from_number(rate),
                    budget: budget(reading),
                };
                let one = shared.decide(&ask(readings.0)).await.unwrap();
                let other = memory.decide(&ask(readings.1)).await.unwrap();
                assert_eq!(one.rate, other.rate);
                match (one.verdict, other.verdict) {
                    (Verdict::Admitted { reservation: one }, Verdict::Admitted { reservation: other }) => {
                        assert_eq!(one.is_some(), other.is_some());
                        open.extend(one.zip(other));
                    }
                    (one, other) => assert_eq!(one, other),
                }
            }
            Step::Clock(ms) => {
                now = now.plus_ms(ms);
                set_clock(server, now.ms()).await;
                shared.renew(now).await;
            }
            Step::Reading => readings = (shared.reading(&workspace).await, memory.reading(&workspace).await),
            Step::Release(_) if open.is_empty() => {}
            Step::Release(tokens) => {
                let (one, other) = open.remove(0);
                let how = if tokens == 0 { Release::Unused } else { Release::Settled { tokens } };
                for _ in 0..2 {
                    shared.release(&workspace, one, how, now).await;
                    memory.release(&workspace, other, how, now).await;
                }
            }
            Step::GiveBack(n, rate) => {
                shared.give_back(&workspace, &user(n), rate, now).await;
                memory.give_back(&workspace, &user(n), rate, now).await;
            }
            Step::Peek(n, rate) => {
                let one = shared.peek(&workspace, &user(n), rate, now).await.unwrap();
                assert_eq!(one, memory.peek(&workspace, &user(n), rate, now).await.unwrap());
            }
        }
    }
    assert_eq!(shared.0.redis.local_decisions(), 0);
    server.assert_all_keys_expire().await;
}

fn property(budgets: std::ops::Range<u8>, clock: std::ops::Range<i64>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Server::start());
    let cases = ProptestConfig::with_cases(60);
    proptest!(cases, |(steps in steps(budgets.clone(), clock.clone()))| {
        runtime.block_on(agree(&server, steps));
    });
}

#[test]
fn rates_are_decided_as_in_memory_whatever_the_clock_does() {
    property(0..2, -30_000..50_000);
}

#[test]
fn budgets_are_decided_as_in_memory() {
    property(0..3, 0..29_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_in_parallel_over_three_replicas_admit_exactly_the_limit() {
    let server = Server::start().await;
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(replica(&server, 3).await);
    }
    let barrier = Arc::new(Barrier::new(100));
    let tasks: Vec<_> = (0..100)
        .map(|n| {
            let (store, barrier) = (stores[n % 3].clone(), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                admitted(&store, 20, 1).await
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    assert_eq!(sum, 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_reserve_mode_three_replicas_never_pass_the_budget_by_a_token() {
    const BUDGET: u64 = 2_000;
    let server = Server::start().await;
    let Fresh { store, folder: _folder } = fresh().await;
    let clock = ManualClock::new(Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap());
    let mut limiters = Vec::new();
    for _ in 0..3 {
        let ledger = Ledger::start(store.clone(), clock.clone());
        let shared = Arc::new(SharedStore::new(server.connect().await, watch::channel(3).1, CLOCK));
        let defaults = Defaults { rate: Limit::Disabled, budget: Limit::Of(BUDGET) };
        let (store, clock) = (store.clone(), clock.clone());
        limiters.push(Limiter::new(store, clock, ledger, shared, defaults, BudgetMode::Reserve));
    }
    let barrier = Arc::new(Barrier::new(45));
    let tasks: Vec<_> = (0..45_u64)
        .map(|n| {
            let limiter = limiters[usize::try_from(n).unwrap() % 3].clone();
            let barrier = barrier.clone();
            tokio::spawn(async move {
                barrier.wait().await;
                for round in 0..10 {
                    let estimate = 20 + (n * 7 + round * 13) % 60;
                    let eve = Who { workspace: "acme".into(), user: "eve".into() };
                    let Ok(admission) = limiter.admit(eve, Route::Chat, estimate).await else { continue };
                    tokio::task::yield_now().await;
                    let usage = Usage { input_tokens: estimate / 2, output_tokens: estimate / 2 - n % 3 };
                    admission.meter().add("m", StepUsage::reported(usage));
                    admission.settle().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let total: u64 =
        read::totals(&store).await.unwrap().iter().map(|r| r.input_tokens + r.output_tokens).sum();
    assert!(total <= BUDGET, "{total}");
    assert!(total > BUDGET - 100, "what was reserved is given back: {total}");
    server.assert_all_keys_expire().await;
}

#[tokio::test]
async fn reservations_of_a_replica_that_is_gone_end_and_renewed_ones_stay() {
    let server = Server::start().await;
    let (gone, alive, asking) =
        (replica(&server, 3).await, replica(&server, 3).await, replica(&server, 3).await);
    let reading = asking.reading(&"acme".into()).await;
    decide(&gone, 0, reserve(0, 600, reading)).await;
    decide(&alive, 0, reserve(0, 100, reading)).await;
    let refused = decide(&asking, 0, reserve(0, 400, reading)).await;
    assert_eq!(refused.verdict, Verdict::OverBudget { reserved: Some(700) });
    for ms in [20_000, 40_000] {
        set_clock(&server, NOW.ms() + ms).await;
        alive.renew(NOW).await;
    }
    let refused = decide(&asking, 0, reserve(0, 901, reading)).await;
    assert_eq!(refused.verdict, Verdict::OverBudget { reserved: Some(100) });
    id(decide(&asking, 0, reserve(0, 900, reading)).await);
}

#[tokio::test]
async fn a_reservation_that_ends_while_it_is_renewed_is_not_brought_back() {
    let server = Server::start().await;
    let store = replica(&server, 1).await;
    let workspace = WorkspaceId::from("acme");
    let reading = store.reading(&workspace).await;
    let held = id(decide(&store, 0, reserve(0, 600, reading)).await);
    store.release(&workspace, held, Release::Unused, NOW).await;
    store.renew_some(&workspace, &[(held, 600)]).await;
    id(decide(&store, 0, reserve(0, 1_000, reading)).await);
}

#[tokio::test]
async fn a_redis_that_lost_everything_hears_of_the_calls_in_flight() {
    let mut server = Server::start().await;
    let clock = ManualClock::new(NOW);
    let store = SharedStore::start(server.connect().await, clock, watch::channel(1).1);
    let reading = store.reading(&"acme".into()).await;
    id(decide(&store, 0, reserve(0, 600, reading)).await);
    server.kill();
    until("it is noticed", || store.0.redis.mode() != Mode::Up).await;
    server.restart().await;
    let key = Keys::of(&"acme".into()).reservations();
    let mut known = 0_i64;
    for _ in 0..1_000 {
        known = server.ask(&format!("ZCARD {key}")).await;
        if known > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(known, 1);
}

#[tokio::test]
async fn without_redis_each_holds_its_share_and_what_was_spent_is_kept() {
    let mut server = Server::start().await;
    let (busy, idle) = (replica(&server, 3).await, replica(&server, 3).await);
    assert_eq!(admitted(&busy, 20, 5).await, 5);
    server.kill();
    assert_eq!(admitted(&busy, 20, 40).await, 1, "a third of 20, five of which are spent");
    assert_eq!(admitted(&idle, 20, 40).await, 6);
    let refused = decide(&idle, 20, BudgetAsk::Off).await;
    assert_eq!(refused.verdict, Verdict::OverRate { wait_ms: 10_000 }, "six a minute come back");
    assert_eq!(refused.rate.unwrap().limit, 20);
    assert!(busy.0.redis.local_decisions() >= 40);

    server.restart().await;
    up(&busy).await;
    up(&idle).await;
    let decision = decide(&idle, 20, BudgetAsk::Off).await;
    assert_eq!(decision.rate.unwrap().remaining, 20 - 6 - 1, "what was admitted without it is charged");
    assert_eq!(admitted(&busy, 20, 40).await, 20 - 7 - 1, "to each replica's account, once");
    server.assert_all_keys_expire().await;
}

#[tokio::test]
async fn a_limit_below_the_number_of_replicas_still_admits() {
    let mut server = Server::start().await;
    let store = replica(&server, 5).await;
    server.kill();
    assert_eq!(admitted(&store, 2, 5).await, 1);
}

#[tokio::test]
async fn without_redis_a_token_given_back_is_no_longer_owed() {
    let mut server = Server::start().await;
    let store = replica(&server, 1).await;
    server.kill();
    assert_eq!(admitted(&store, 20, 2).await, 2);
    store.give_back(&"acme".into(), &"eve".into(), 20, NOW).await;
    server.restart().await;
    up(&store).await;
    assert_eq!(decide(&store, 20, BudgetAsk::Off).await.rate.unwrap().remaining, 18);
}

#[tokio::test]
async fn without_redis_the_rest_of_the_budget_is_shared_out() {
    let mut server = Server::start().await;
    let store = replica(&server, 2).await;
    let workspace = WorkspaceId::from("acme");
    let reading = store.reading(&workspace).await;
    let before = id(decide(&store, 0, reserve(200, 100, reading)).await);
    server.kill();
    // 800 are left, 400 of them for this replica, and 100 of those are in flight.
    let first = id(decide(&store, 0, reserve(200, 300, reading)).await);
    let set_aside = Verdict::OverBudget { reserved: Some(800) };
    assert_eq!(decide(&store, 0, reserve(200, 1, reading)).await.verdict, set_aside);
    store.release(&workspace, before, Release::Unused, NOW).await;
    store.release(&workspace, first, Release::Settled { tokens: 250 }, NOW).await;
    // 450 are recorded now, and 150 of this replica's share are left.
    let set_aside = Verdict::OverBudget { reserved: Some(550 - 150) };
    assert_eq!(decide(&store, 0, reserve(450, 151, reading)).await.verdict, set_aside);
    id(decide(&store, 0, reserve(450, 150, reading)).await);
    let spent = decide(&store, 0, reserve(1_000, 1, reading)).await.verdict;
    assert_eq!(spent, Verdict::OverBudget { reserved: None });
    let spent = decide(&store, 0, BudgetAsk::Gate { limit: 10, used: 10 }).await.verdict;
    assert_eq!(spent, Verdict::OverBudget { reserved: None });
}

#[tokio::test]
async fn a_frozen_redis_hangs_nobody_and_a_call_that_it_may_have_charged_counts() {
    let server = Server::start().await;
    let redis = Redis::start(&server.url(), ManualClock::new(NOW)).await.unwrap();
    let store = SharedStore::new(redis, watch::channel(1).1, TEST_CLOCK);
    server.freeze();
    let begun = tokio::time::Instant::now();
    assert_eq!(admitted(&store, 20, 30).await, 20);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    server.thaw();
    up(&store).await;
    let decision = decide(&store, 20, BudgetAsk::Off).await;
    assert!(matches!(decision.verdict, Verdict::OverRate { .. }), "{decision:?}");
}
