//! Buckets and reservations in Redis: limits that hold over all replicas.
//!
//! One script is one decision, by Redis's own clock. Every key expires, so nothing is ever left there. While Redis
//! does not answer, [`Local`] decides: this replica then holds its share of the limits, and what it admitted
//! is told to Redis when it is back.

mod local;
mod scripts;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use tokio::sync::watch;

use self::local::Local;
use self::scripts::{Keys, Scripts};
use super::bucket::Bucket;
use super::store::{Ask, BudgetAsk, Decision, RateLimitStore, Reading, Release, ReservationId, Verdict};
use crate::clock::SharedClock;
use crate::model::{Error, Limit, RateState, Timestamp, UserId, WorkspaceId};
use crate::redis::{CLOCK, Mode, Redis, exact};

/// A reservation that its replica does not renew ends after this long: the replica is gone.
const RESERVATION_LIFE: Duration = Duration::from_secs(30);
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// Reservations renewed by one script, and workspaces at once.
const RENEW_TOGETHER: usize = 500;
const RENEW_AT_ONCE: usize = 16;

/// A [`RateLimitStore`] that all replicas share.
#[derive(Clone)]
pub struct SharedStore(Arc<Inner>);

struct Inner {
    redis: Redis,
    scripts: Scripts,
    local: Local,
    /// Names this process's reservations among those of all.
    replica: String,
}

impl SharedStore {
    /// `replicas` says how many replicas there are: each holds that share of the limits while Redis is away.
    pub fn start(redis: Redis, clock: SharedClock, replicas: watch::Receiver<u32>) -> Self {
        let store = Self::new(redis, replicas, CLOCK);
        tokio::spawn(store.clone().keep_reservations(clock));
        store
    }

    fn new(redis: Redis, replicas: watch::Receiver<u32>, clock_lua: &str) -> Self {
        Self(Arc::new(Inner {
            redis,
            scripts: Scripts::new(clock_lua),
            local: Local::new(replicas),
            replica: format!("{:032x}", rand::random::<u128>()),
        }))
    }

    /// A reservation as Redis keeps it: what it holds, and whose it is.
    fn member(&self, id: ReservationId, tokens: u64) -> String {
        format!("{}:{}:{}", exact(tokens), self.0.replica, id.0)
    }

    async fn decide_in_redis(
        &self,
        ask: &Ask,
        owed: u64,
        reservation: Option<ReservationId>,
    ) -> Option<Decision> {
        let Inner { redis, scripts, .. } = &*self.0;
        let keys = Keys::of(&ask.workspace);
        let (mode, limit, used, estimate, reading) = match ask.budget {
            BudgetAsk::Off => ("off", 0, 0, 0, 0),
            BudgetAsk::Gate { limit, used } => ("gate", limit, used, 0, 0),
            BudgetAsk::Reserve { limit, used, estimate, reading } => {
                ("reserve", limit, used, estimate, reading.0)
            }
        };
        let member = reservation.map(|id| self.member(id, estimate)).unwrap_or_default();
        let mut script = scripts.decide.key(keys.bucket(ask.user.as_str()));
        script.key(keys.reservations()).key(keys.settlements());
        script.arg(ask.rate.number()).arg(owed).arg(mode);
        script.arg(exact(limit)).arg(exact(used)).arg(exact(estimate)).arg(reading).arg(member);
        script.arg(RESERVATION_LIFE.as_millis());
        let (verdict, reserved, spent): (String, Option<u64>, u64) = redis.run(&script).await.ok()?;
        let bucket = Bucket::holding(spent, ask.now);
        let verdict = match (verdict.as_str(), ask.rate) {
            ("budget", _) => Verdict::OverBudget { reserved },
            ("rate", Limit::Of(limit)) => {
                Verdict::OverRate { wait_ms: bucket.check(limit).err().unwrap_or_default() }
            }
            _ => Verdict::Admitted { reservation },
        };
        Some(Decision { verdict, rate: ask.rate.value().map(|limit| bucket.state(limit)) })
    }

    async fn release_in_redis(&self, workspace: &WorkspaceId, member: String, settlement: Option<String>) {
        let keys = Keys::of(workspace);
        let mut script = self.0.scripts.release.key(keys.reservations());
        script.key(keys.settlements()).key(keys.numbers()).arg(member);
        if let Some(settlement) = settlement {
            script.arg(settlement);
        }
        // Without an answer it ends by itself, a little later: nobody renews it.
        let _ = self.0.redis.run::<()>(&script).await;
    }

    /// Renews what this replica has in flight, now and then and at once when Redis comes back: it may be empty.
    async fn keep_reservations(self, clock: SharedClock) {
        let mut mode = self.0.redis.watch();
        loop {
            // The other end lives in the handle that this task holds.
            let _ = tokio::time::timeout(RENEW_EVERY, mode.changed()).await;
            self.renew(clock.now()).await;
        }
    }

    async fn renew(&self, now: Timestamp) {
        let up = self.0.redis.mode() == Mode::Up;
        let in_flight = self.0.local.in_flight(now, up);
        if !up {
            return;
        }
        futures::stream::iter(in_flight)
            .for_each_concurrent(RENEW_AT_ONCE, async |(workspace, reservations)| {
                for some in reservations.chunks(RENEW_TOGETHER) {
                    self.renew_some(&workspace, some).await;
                }
            })
            .await;
    }

    async fn renew_some(&self, workspace: &WorkspaceId, reservations: &[(ReservationId, u64)]) {
        let mut script = self.0.scripts.renew.key(Keys::of(workspace).reservations());
        script.arg(RESERVATION_LIFE.as_millis());
        for (id, tokens) in reservations {
            script.arg(self.member(*id, *tokens));
        }
        let _ = self.0.redis.run::<()>(&script).await;
        // What ended meanwhile may have been renewed after its end.
        for (id, tokens) in reservations {
            if !self.0.local.holds(workspace, *id) {
                self.release_in_redis(workspace, self.member(*id, *tokens), None).await;
            }
        }
    }
}

#[async_trait]
impl RateLimitStore for SharedStore {
    /// 0, older than every settlement, where Redis doesn't say: all that were settled lately count then.
    async fn reading(&self, workspace: &WorkspaceId) -> Reading {
        let script = self.0.scripts.reading.key(Keys::of(workspace).numbers());
        Reading(self.0.redis.run(&script).await.unwrap_or(0))
    }

    async fn decide(&self, ask: &Ask) -> Result<Decision, Error> {
        let Inner { redis, local, .. } = &*self.0;
        let reservation = matches!(ask.budget, BudgetAsk::Reserve { .. }).then(|| local.next_reservation());
        let owed = local.owed(ask);
        if let Some(decision) = self.decide_in_redis(ask, owed.units(), reservation).await {
            owed.paid();
            local.remember(ask, decision.verdict);
            return Ok(decision);
        }
        // It goes back before the decision, which may add to it.
        drop(owed);
        redis.count_local_decision();
        let decision = local.decide(ask, reservation);
        if let (Some(id), BudgetAsk::Reserve { estimate, .. }) = (reservation, ask.budget)
            && !matches!(decision.verdict, Verdict::Admitted { .. })
        {
            // It may have been reserved nevertheless.
            self.release_in_redis(&ask.workspace, self.member(id, estimate), None).await;
        }
        Ok(decision)
    }

    async fn peek(
        &self,
        workspace: &WorkspaceId,
        user: &UserId,
        limit: u64,
        now: Timestamp,
    ) -> Result<RateState, Error> {
        let mut script = self.0.scripts.peek.key(Keys::of(workspace).bucket(user.as_str()));
        Ok(match self.0.redis.run(script.arg(limit)).await {
            Ok(spent) => Bucket::holding(spent, now).state(limit),
            Err(_) => self.0.local.peek(workspace, user, limit, now),
        })
    }

    async fn give_back(&self, workspace: &WorkspaceId, user: &UserId, limit: u64, now: Timestamp) {
        if self.0.local.give_back(workspace, user, limit, now) {
            return;
        }
        let mut script = self.0.scripts.give_back.key(Keys::of(workspace).bucket(user.as_str()));
        // Without an answer the token is lost, which errs on the safe side.
        let _ = self.0.redis.run::<()>(script.arg(limit)).await;
    }

    async fn release(&self, workspace: &WorkspaceId, id: ReservationId, how: Release, _now: Timestamp) {
        let used = match how {
            Release::Unused => 0,
            Release::Settled { tokens } => tokens,
        };
        let Some(held) = self.0.local.release(workspace, id, used) else { return };
        let settlement = (used > 0).then(|| self.member(id, used));
        self.release_in_redis(workspace, self.member(id, held), settlement).await;
    }
}
