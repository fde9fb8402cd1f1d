//! Provider keys' quotas over all replicas, in Redis: calls in flight, and what was counted lately.
//!
//! Each replica's own counts come from the database, which has other replicas' calls a moment late. Redis closes
//! that gap: a call takes its place there too, and the higher count holds, so a Redis that lost everything
//! needs no rebuilding. While it does not answer, a replica keeps its calls in flight within its share of what is left;
//! they take their places there when it is back.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::redis::Script;
use async_trait::async_trait;
use futures::StreamExt as _;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::book::{CandidateId, Gauge, Kind};
use super::shared::{LeaseAsk, LeaseEvent, LeaseNumber, SharedLeases, Taken};
use crate::redis::{self, CLOCK, Mode, Redis, escaped, exact};

/// A lease that its replica does not renew ends after this long: the replica is gone.
const LEASE_LIFE: Duration = Duration::from_secs(30);
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// Leases renewed by one script.
const RENEW_TOGETHER: usize = 250;
/// Scripts under way at once, beside those that calls wait for.
const AT_ONCE: usize = 32;
/// News of calls that wait to be told. What is dropped beyond is in the database like the rest.
const NEWS: usize = 8_192;

/// [`SharedLeases`] in Redis.
#[derive(Clone)]
pub struct RedisLeases(Arc<Inner>);

struct Inner {
    redis: Redis,
    take: Script,
    end: Script,
    renew: Script,
    /// How many replicas there are.
    replicas: watch::Receiver<u32>,
    /// Names this process's leases among those of all.
    replica: String,
    open: Mutex<Open>,
    news: mpsc::Sender<News>,
}

#[derive(Default)]
struct Open {
    last: u64,
    leases: HashMap<LeaseNumber, Live>,
    /// What counts here already and is still in flight there, until Redis has been told.
    untold: HashMap<u64, Untold>,
}

struct Untold {
    id: CandidateId,
    requests: u64,
    tokens: u64,
}

/// A call in flight.
#[derive(Clone)]
struct Live {
    id: CandidateId,
    /// Which counts have a limit, and are kept.
    counted: [bool; 5],
    tokens: u64,
    request_open: bool,
    tokens_open: bool,
}

/// What a call no longer holds, and what counts from now.
struct News {
    number: u64,
    lease: LeaseNumber,
    live: Live,
    closes_request: bool,
    closes_tokens: bool,
    requests: u64,
    tokens: u64,
}

impl RedisLeases {
    /// `replicas` says how many replicas there are.
    pub fn start(redis: Redis, replicas: watch::Receiver<u32>) -> Self {
        let (leases, news) = Self::new(redis, replicas, CLOCK);
        tokio::spawn(leases.clone().tell_all(news));
        tokio::spawn(leases.clone().keep());
        leases
    }

    fn new(redis: Redis, replicas: watch::Receiver<u32>, clock: &str) -> (Self, mpsc::Receiver<News>) {
        let script = |body: &str| redis::script(clock, &[include_str!("windows.lua"), body]);
        let (news, told) = mpsc::channel(NEWS);
        let leases = Self(Arc::new(Inner {
            redis,
            take: script(include_str!("take.lua")),
            end: script(include_str!("end.lua")),
            renew: script(include_str!("renew.lua")),
            replicas,
            replica: format!("{:032x}", rand::random::<u128>()),
            open: Mutex::default(),
            news,
        }));
        (leases, told)
    }

    /// The members that stand for a call's open request and open tokens; empty for what is not meant.
    fn members(&self, lease: LeaseNumber, tokens: u64, request: bool, tokens_too: bool) -> [String; 2] {
        let name = format!("{}:{}", self.0.replica, lease.0);
        let held = if tokens_too { format!("{}:{name}", exact(tokens)) } else { String::new() };
        [if request { name } else { String::new() }, held]
    }

    async fn tell_all(self, news: mpsc::Receiver<News>) {
        let tell = async |news: News| self.tell_one(&news).await;
        ReceiverStream::new(news).for_each_concurrent(AT_ONCE, tell).await;
    }

    async fn tell_one(&self, news: &News) {
        let mut script = with_keys(&self.0.end, &news.live.id);
        for counted in news.live.counted {
            script.arg(u8::from(counted));
        }
        script.arg(&self.members(news.lease, news.live.tokens, news.closes_request, news.closes_tokens));
        script.arg(news.requests).arg(exact(news.tokens));
        // Without an answer the lease ends by itself, and the count is in the database.
        let _ = self.0.redis.run::<()>(&script).await;
        self.0.open.lock().untold.remove(&news.number);
    }

    /// Renews the leases of this replica, now and then and at once when Redis comes back: it may be empty.
    async fn keep(self) {
        let mut mode = self.0.redis.watch();
        loop {
            // The other end lives in the handle that this task holds.
            let _ = tokio::time::timeout(RENEW_EVERY, mode.changed()).await;
            if self.0.redis.mode() == Mode::Up {
                self.renew().await;
            }
        }
    }

    async fn renew(&self) {
        let mut alive: HashMap<CandidateId, Vec<(LeaseNumber, Live)>> = HashMap::new();
        for (lease, live) in &self.0.open.lock().leases {
            alive.entry(live.id.clone()).or_default().push((*lease, live.clone()));
        }
        futures::stream::iter(alive)
            .for_each_concurrent(AT_ONCE, async |(id, leases)| {
                for some in leases.chunks(RENEW_TOGETHER) {
                    self.renew_some(&id, some).await;
                }
            })
            .await;
    }

    async fn renew_some(&self, id: &CandidateId, leases: &[(LeaseNumber, Live)]) {
        let mut script = with_keys(&self.0.renew, id);
        script.arg(LEASE_LIFE.as_millis());
        for (lease, live) in leases {
            script.arg(&self.members(*lease, live.tokens, live.request_open, live.tokens_open));
        }
        let _ = self.0.redis.run::<()>(&script).await;
        // What was closed meanwhile may have been renewed after its end.
        for (lease, live) in leases {
            let (request_open, tokens_open) = {
                let open = self.0.open.lock();
                open.leases.get(lease).map_or((false, false), |now| (now.request_open, now.tokens_open))
            };
            let closes_request = live.request_open && !request_open;
            let closes_tokens = live.tokens_open && !tokens_open;
            if closes_request || closes_tokens {
                let live = live.clone();
                let news = News {
                    number: 0,
                    lease: *lease,
                    live,
                    closes_request,
                    closes_tokens,
                    requests: 0,
                    tokens: 0,
                };
                self.tell_one(&news).await;
            }
        }
    }
}

impl Open {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The replica's counts without what Redis still takes for in flight: it would count twice.
    fn as_redis_was_told(&self, ask: &LeaseAsk) -> [Gauge; 5] {
        ask.gauges.map(|gauge| {
            let of_gauge = |untold: &&Untold| match gauge.kind {
                Kind::ProviderDay => untold.id.key_id() == ask.id.key_id(),
                _ => untold.id == ask.id,
            };
            let amount = |untold: &Untold| {
                if gauge.kind.counts_tokens() { untold.tokens } else { untold.requests }
            };
            let untold = self.untold.values().filter(of_gauge).map(amount).fold(0, u64::saturating_add);
            Gauge { used: gauge.used.saturating_sub(untold), ..gauge }
        })
    }
}

#[async_trait]
impl SharedLeases for RedisLeases {
    async fn take(&self, ask: LeaseAsk) -> Taken {
        if ask.gauges.iter().all(|gauge| gauge.limit.is_none()) {
            return Taken::Uncounted;
        }
        let (lease, gauges) = {
            let mut open = self.0.open.lock();
            (LeaseNumber(open.next()), open.as_redis_was_told(&ask))
        };
        let mut script = with_keys(&self.0.take, &ask.id);
        for gauge in &ask.gauges {
            match gauge.limit {
                Some(limit) => script.arg(exact(limit)),
                None => script.arg(-1),
            };
        }
        for gauge in &gauges {
            script.arg(exact(gauge.used));
        }
        for gauge in &ask.gauges {
            script.arg(exact(gauge.in_flight));
        }
        let [member, _] = self.members(lease, 0, true, false);
        script.arg(exact(ask.tokens)).arg(member).arg(LEASE_LIFE.as_millis());
        let answer: Result<bool, _> = self.0.redis.run(&script).await;
        let counted = ask.gauges.map(|gauge| gauge.limit.is_some());
        let live = Live { id: ask.id, counted, tokens: ask.tokens, request_open: true, tokens_open: true };
        let taken = answer.unwrap_or_else(|_| {
            self.0.redis.count_local_decision();
            let replicas = u64::from(*self.0.replicas.borrow()).max(1);
            ask.gauges.iter().all(|gauge| is_within_share(gauge, ask.tokens, replicas))
        });
        // Without an answer the place may have been taken there nevertheless: it is given up with this one.
        if taken || answer.is_err() {
            self.0.open.lock().leases.insert(lease, live);
        }
        if taken {
            return Taken::Yes(lease);
        }
        self.tell(lease, LeaseEvent::Ended);
        Taken::No
    }

    fn tell(&self, lease: LeaseNumber, event: LeaseEvent) {
        let mut open = self.0.open.lock();
        let Some(live) = open.leases.get_mut(&lease) else { return };
        let was = live.clone();
        let (requests, tokens) = match event {
            LeaseEvent::Answered => {
                live.request_open = false;
                (1, 0)
            }
            LeaseEvent::Settled { tokens } => {
                live.tokens_open = false;
                (0, tokens)
            }
            LeaseEvent::Ended => {
                live.request_open = false;
                live.tokens_open = false;
                (0, 0)
            }
        };
        let closes_request = was.request_open && !live.request_open;
        let closes_tokens = was.tokens_open && !live.tokens_open;
        if event == LeaseEvent::Ended {
            open.leases.remove(&lease);
        }
        if closes_request || closes_tokens {
            let number = open.next();
            if requests > 0 || tokens > 0 {
                open.untold.insert(number, Untold { id: was.id.clone(), requests, tokens });
            }
            let news = News { number, lease, live: was, closes_request, closes_tokens, requests, tokens };
            if self.0.news.try_send(news).is_err() {
                open.untold.remove(&number);
                tracing::debug!("Redis is not told of a call: too much waits to be told");
            }
        }
    }
}

/// Whether one more call fits in this replica's share of what is left. One at a time always does: the replica has
/// found room for it by its own counts.
fn is_within_share(gauge: &Gauge, tokens: u64, replicas: u64) -> bool {
    let Some(limit) = gauge.limit else { return true };
    let more = if gauge.kind.counts_tokens() { tokens } else { 1 };
    let share = limit.saturating_sub(gauge.used) / replicas;
    gauge.in_flight == 0 || gauge.in_flight.saturating_add(more) <= share
}

/// With the keys that all scripts are given. Those of all models under a provider key stand together.
fn with_keys<'s>(script: &'s Script, id: &CandidateId) -> ::redis::ScriptInvocation<'s> {
    let key = format!("tollkeeper:{{{}/{}}}", escaped(&id.platform), escaped(&id.key));
    let model = format!("{key}:{}", escaped(&id.model));
    let mut script = script.key(format!("{model}:rpm"));
    for count in ["rpd", "tpm", "tpd"] {
        script.key(format!("{model}:{count}"));
    }
    script.key(format!("{key}:day"));
    script.key(format!("{model}:requests")).key(format!("{model}:tokens")).key(format!("{key}:requests"));
    script
}
