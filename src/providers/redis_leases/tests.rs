//! Several replicas over one real Redis.

use proptest::prelude::*;
use tokio::sync::Barrier;

use super::super::book::Limits;
use super::super::quotas::{Contender, Estimate, Lease, Quotas, UsageSink};
use super::super::{Failure, StatedLimits};
use super::*;
use crate::clock::ManualClock;
use crate::ledger::{Meter, StepUsage, WindowRow};
use crate::model::{Timestamp, Usage};
use crate::redis::TEST_CLOCK;
use crate::redis::testing::{Server, until};

async fn set_clock(server: &Server, ms: i64) {
    let () = server.ask(&format!("SET test-clock {ms} EX 1000")).await;
}

/// A replica that believes to be one of three. Nothing is renewed or told unless the test does.
async fn replica(server: &Server) -> (RedisLeases, mpsc::Receiver<News>) {
    RedisLeases::new(server.connect().await, watch::channel(3).1, TEST_CLOCK)
}

fn candidate() -> CandidateId {
    CandidateId::new("alpha", "large/1", "k_1")
}

fn gauges(limits: [Option<u64>; 5], used: u64, in_flight: u64) -> [Gauge; 5] {
    let kinds = [Kind::Rpm, Kind::Rpd, Kind::Tpm, Kind::Tpd, Kind::ProviderDay];
    std::array::from_fn(|at| Gauge { kind: kinds[at], used, in_flight, limit: limits[at] })
}

fn ask(limits: [Option<u64>; 5], tokens: u64) -> LeaseAsk {
    LeaseAsk { id: candidate(), gauges: gauges(limits, 0, 0), tokens }
}

fn rpm(limit: u64) -> [Option<u64>; 5] {
    [Some(limit), None, None, None, None]
}

async fn tell_all(leases: &RedisLeases, news: &mut mpsc::Receiver<News>) {
    while let Ok(news) = news.try_recv() {
        leases.tell_one(&news).await;
    }
}

/// Requests and tokens, each with its time, for ever.
type Log = Vec<(i64, u64)>;

fn sum_after(log: &Log, ms: i64) -> u64 {
    log.iter().filter(|(at, _)| *at > ms).map(|(_, amount)| amount).sum()
}

/// Calls that end at once, one after the other: none passes a limit by an exact log, and none is refused for longer
/// than the width of a slot.
async fn holds(server: &Server, start: i64, steps: Vec<(i64, u64)>) {
    const DAY: i64 = 86_400_000;
    let limits = [Some(5), Some(30), Some(150), Some(1_000), Some(25)];
    let () = server.ask("FLUSHALL").await;
    let (leases, mut news) = replica(server).await;
    let (mut requests, mut tokens, mut now) = (Log::new(), Log::new(), start);
    for (gap, estimate) in steps {
        now += gap;
        set_clock(server, now).await;
        let taken = leases.take(ask(limits, estimate)).await;
        let windows = [
            (5, &requests, 60_000, 500, 1),
            (30, &requests, DAY, 120_000, 1),
            (150, &tokens, 60_000, 500, estimate),
            (1_000, &tokens, DAY, 120_000, estimate),
            (25, &requests, now % DAY + 1, 0, 1),
        ];
        match taken {
            Taken::Yes(lease) => {
                for (limit, log, length, _, more) in windows {
                    let used = sum_after(log, now - length);
                    assert!(used + more <= limit || used == 0, "{used} and {more} of {limit}");
                }
                leases.tell(lease, LeaseEvent::Answered);
                leases.tell(lease, LeaseEvent::Settled { tokens: estimate });
                leases.tell(lease, LeaseEvent::Ended);
                tell_all(&leases, &mut news).await;
                requests.push((now, 1));
                tokens.push((now, estimate));
            }
            Taken::No => {
                let full = windows.into_iter().any(|(limit, log, length, width, more)| {
                    sum_after(log, now - length - width) + more > limit
                });
                assert!(full, "refused without reason at {now}");
            }
            Taken::Uncounted => panic!("there are limits"),
        }
    }
    assert!(leases.0.open.lock().leases.is_empty());
    server.assert_all_keys_expire().await;
}

#[test]
fn windows_hold_by_an_exact_log() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Server::start());
    let gap = prop_oneof![
        // To the millisecond where a slot begins, ends and is let go of.
        4 => prop_oneof![Just(0), Just(1), Just(499), Just(59_500), Just(59_999)],
        8 => 0..3_i64, 4 => 0..700_i64, 4 => 0..20_000_i64, 4 => 0..200_000_i64, 1 => 0..40_000_000_i64,
    ];
    let steps = prop::collection::vec((gap, 0..90_u64), 1..80);
    proptest!(ProptestConfig::with_cases(60), |(slot in 2_000_000..4_000_000_i64, steps in steps)| {
        runtime.block_on(holds(&server, slot * 500 + 499, steps));
    });
}

struct Nowhere;

impl UsageSink for Nowhere {
    fn record(&self, _: Vec<WindowRow>) {}
}

/// A replica with counts of its own, that knows nothing of the others but through Redis.
async fn quotas(server: &Server, limits: Limits) -> (Quotas, RedisLeases, mpsc::Receiver<News>) {
    let (leases, news) = replica(server).await;
    let quotas = Quotas::new(ManualClock::new(Timestamp(5_000)), Arc::new(Nowhere))
        .with_shared(Some(Arc::new(leases.clone())));
    quotas.install(std::iter::once((&candidate(), limits, None)));
    (quotas, leases, news)
}

async fn lease(quotas: &Quotas) -> Option<Lease> {
    let id = candidate();
    let estimate = Estimate { fixed: 100, per_typical_output: 0 };
    let (_, mut lease) = quotas.reserve(&[Contender { id: &id, priority: 1 }], |_| false, estimate, true)?;
    lease.is_confirmed().await.then_some(lease)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_replicas_never_pass_a_keys_limit() {
    let server = Server::start().await;
    let limits = Limits { rpm: Some(20), tpm: Some(2_500), ..Limits::default() };
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(quotas(&server, limits).await);
    }
    let barrier = Arc::new(Barrier::new(90));
    let tasks: Vec<_> = (0..90)
        .map(|n| {
            let (quotas, barrier) = (replicas[n % 3].0.clone(), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                lease(&quotas).await
            })
        })
        .collect();
    let mut open = Vec::new();
    for task in tasks {
        open.extend(task.await.unwrap());
    }
    assert_eq!(open.len(), 20);
    // Eight count as requests, and twelve give their places up.
    for mut lease in open.drain(..8) {
        lease.answered(StatedLimits::default());
    }
    for lease in open.drain(..) {
        let _ = lease.failed(&Failure::Status {
            status: 429,
            retry_after_ms: Some(1),
            reset_ms: None,
            message: None,
            code: None,
            param: None,
        });
    }
    for (quotas, leases, news) in &mut replicas {
        tell_all(leases, news).await;
        quotas.clear_key("alpha", "k_1");
    }
    for turn in 0..60 {
        open.extend(lease(&replicas[turn % 3].0).await);
    }
    assert_eq!(open.len(), 12);
    server.assert_all_keys_expire().await;
}

#[tokio::test]
async fn leases_of_a_replica_that_is_gone_end_and_renewed_ones_stay() {
    let server = Server::start().await;
    let (gone, _gone_news) = replica(&server).await;
    let (alive, mut news) = replica(&server).await;
    assert!(matches!(gone.take(ask(rpm(2), 0)).await, Taken::Yes(_)));
    let Taken::Yes(kept) = alive.take(ask(rpm(2), 0)).await else { panic!() };
    assert_eq!(alive.take(ask(rpm(2), 0)).await, Taken::No);
    for ms in [25_000, 45_000] {
        set_clock(&server, ms).await;
        alive.renew().await;
    }
    assert!(matches!(alive.take(ask(rpm(2), 0)).await, Taken::Yes(_)));
    assert_eq!(alive.take(ask(rpm(2), 0)).await, Taken::No);
    // What ends while it is renewed is not brought back.
    let live = alive.0.open.lock().leases[&kept].clone();
    alive.tell(kept, LeaseEvent::Ended);
    tell_all(&alive, &mut news).await;
    alive.renew_some(&candidate(), &[(kept, live)]).await;
    assert!(matches!(alive.take(ask(rpm(2), 0)).await, Taken::Yes(_)));
}

#[tokio::test]
async fn a_redis_that_lost_everything_believes_the_replica() {
    let server = Server::start().await;
    let (leases, _news) = replica(&server).await;
    let known = |used, in_flight| LeaseAsk { gauges: gauges(rpm(10), used, in_flight), ..ask(rpm(10), 0) };
    assert_eq!(leases.take(known(8, 2)).await, Taken::No);
    assert!(matches!(leases.take(known(8, 1)).await, Taken::Yes(_)));
}

#[tokio::test]
async fn what_redis_has_not_been_told_yet_counts_once() {
    let server = Server::start().await;
    let limits = Limits { rpm: Some(2), tpm: Some(250), ..Limits::default() };
    let (quotas, leases, mut news) = quotas(&server, limits).await;
    let mut first = lease(&quotas).await.unwrap();
    first.answered(StatedLimits::default());
    let usage = Usage { input_tokens: 100, output_tokens: 0 };
    first.settle(&StepUsage::reported(usage), &Meter::default());
    let second = lease(&quotas).await.expect("one request and 100 tokens of 250 are used");
    tell_all(&leases, &mut news).await;
    assert!(leases.0.open.lock().untold.is_empty());
    assert!(lease(&quotas).await.is_none());
    drop(second);
    tell_all(&leases, &mut news).await;
    assert!(lease(&quotas).await.is_some());
}

#[tokio::test]
async fn without_limits_redis_is_not_asked() {
    let server = Server::start().await;
    let (leases, _news) = replica(&server).await;
    assert_eq!(leases.take(ask([None; 5], 5)).await, Taken::Uncounted);
    let keys: Vec<String> = server.ask("KEYS *{*").await;
    assert!(keys.is_empty(), "{keys:?}");
}

#[tokio::test]
async fn without_redis_calls_in_flight_stay_within_the_share_and_are_known_when_it_is_back() {
    let mut server = Server::start().await;
    let leases = RedisLeases::start(server.connect().await, watch::channel(3).1);
    let known = |used, in_flight| LeaseAsk { gauges: gauges(rpm(20), used, in_flight), ..ask(rpm(20), 0) };
    server.kill();
    for in_flight in 0..6 {
        assert!(matches!(leases.take(known(2, in_flight)).await, Taken::Yes(_)), "{in_flight}");
    }
    assert_eq!(leases.take(known(2, 6)).await, Taken::No, "a third of 18");
    assert!(matches!(leases.take(known(19, 0)).await, Taken::Yes(_)), "one at a time always may");
    server.restart().await;
    until("Redis is up", || leases.0.redis.mode() == Mode::Up).await;
    let (other, _news) = replica(&server).await;
    let mut taken = Taken::Yes(LeaseNumber(0));
    for _ in 0..200 {
        taken = other.take(ask(rpm(7), 0)).await;
        if taken == Taken::No {
            break;
        }
        let Taken::Yes(early) = taken else { panic!() };
        other.tell(early, LeaseEvent::Ended);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(taken, Taken::No, "seven are in flight");
}
