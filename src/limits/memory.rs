//! Buckets and reservations in this process: the truth where one server is all there is.
//!
//! Bounded: idle buckets are swept, and past [`MAX_BUCKETS`] a shard drops its emptiest ones first.
//! A reservation that nobody released (a task that died) ends at its deadline.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::bucket::Bucket;
use super::store::{Ask, BudgetAsk, Decision, RateLimitStore, Reading, Release, ReservationId, Verdict};
use crate::model::{Error, Limit, RateState, Timestamp, UserId, WorkspaceId};

const SHARDS: usize = 16;
/// Buckets over all shards: some 100 bytes each.
const MAX_BUCKETS: usize = 1_000_000;
/// A request can't take longer than this, so a reservation that is older was lost.
const RESERVATION_LIFE_MS: i64 = 15 * 60_000;
/// A reading is used within this time or not at all, so older settlements are in every reading.
const READING_LIFE_MS: i64 = 60_000;
/// How often a shard looks for what is idle, in decisions.
const SWEEP_EVERY: u32 = 4_096;

pub struct MemoryStore {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    next_reservation: AtomicU64,
    max_buckets_a_shard: usize,
}

#[derive(Default)]
struct Shard {
    workspaces: HashMap<WorkspaceId, Workspace>,
    buckets: usize,
    decisions: u32,
}

#[derive(Default)]
struct Workspace {
    /// With the limit that the bucket was last held to, for the sweep.
    buckets: HashMap<UserId, (Bucket, u64)>,
    reserved: HashMap<ReservationId, Reserved>,
    settled: Vec<Settled>,
}

struct Reserved {
    tokens: u64,
    deadline: Timestamp,
}

/// A reservation that became real usage: counted until no older reading can be in use.
struct Settled {
    tokens: u64,
    committed: Reading,
    at: Timestamp,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_capacity(MAX_BUCKETS)
    }
}

impl MemoryStore {
    pub fn with_capacity(max_buckets: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            next_reservation: AtomicU64::new(1),
            max_buckets_a_shard: max_buckets.div_ceil(SHARDS),
        }
    }

    /// How many buckets are kept.
    pub fn buckets(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().buckets).sum()
    }

    fn shard(&self, workspace: &WorkspaceId) -> &Mutex<Shard> {
        let at = self.hasher.hash_one(workspace) % SHARDS as u64;
        &self.shards[usize::try_from(at).unwrap_or(0)]
    }

    fn decide_now(&self, ask: &Ask) -> Decision {
        let mut shard = self.shard(&ask.workspace).lock();
        shard.housekeeping(ask.now, self.max_buckets_a_shard);
        let workspace = shard.workspaces.entry(ask.workspace.clone()).or_default();

        let budget = workspace.check_budget(ask.budget, ask.now);
        let bucket = ask.rate.value().map(|limit| workspace.drained(&ask.user, limit, ask.now));
        let rate = match (ask.rate, bucket) {
            (Limit::Of(limit), Some(bucket)) => bucket.check(limit),
            _ => Ok(()),
        };
        let verdict = match (budget, rate) {
            (Err(reserved), _) => Verdict::OverBudget { reserved },
            (Ok(()), Err(wait_ms)) => Verdict::OverRate { wait_ms },
            (Ok(()), Ok(())) => {
                let reservation = match ask.budget {
                    BudgetAsk::Reserve { estimate, .. } => {
                        let id = ReservationId(self.next_reservation.fetch_add(1, Ordering::Relaxed));
                        let deadline = ask.now.plus_ms(RESERVATION_LIFE_MS);
                        workspace.reserved.insert(id, Reserved { tokens: estimate, deadline });
                        Some(id)
                    }
                    BudgetAsk::Off | BudgetAsk::Gate { .. } => None,
                };
                Verdict::Admitted { reservation }
            }
        };

        let mut added = 0;
        let rate = ask.rate.value().zip(bucket).map(|(limit, mut bucket)| {
            if matches!(verdict, Verdict::Admitted { .. }) {
                bucket.spend_one();
            }
            // An empty bucket says nothing that a missing one doesn't.
            if bucket.spent_units() > 0
                && workspace.buckets.insert(ask.user.clone(), (bucket, limit)).is_none()
            {
                added = 1;
            }
            bucket.state(limit)
        });
        shard.buckets += added;
        Decision { verdict, rate }
    }
}

#[async_trait]
impl RateLimitStore for MemoryStore {
    async fn decide(&self, ask: &Ask) -> Result<Decision, Error> {
        Ok(self.decide_now(ask))
    }

    async fn peek(
        &self,
        workspace: &WorkspaceId,
        user: &UserId,
        limit: u64,
        now: Timestamp,
    ) -> Result<RateState, Error> {
        let shard = self.shard(workspace).lock();
        let bucket =
            shard.workspaces.get(workspace).map_or_else(|| Bucket::new(now), |w| w.drained(user, limit, now));
        Ok(bucket.state(limit))
    }

    async fn give_back(&self, workspace: &WorkspaceId, user: &UserId, limit: u64, now: Timestamp) {
        let mut shard = self.shard(workspace).lock();
        let bucket = shard.workspaces.get_mut(workspace).and_then(|w| w.buckets.get_mut(user));
        if let Some((bucket, _)) = bucket {
            bucket.drain(limit, now);
            bucket.give_back_one();
        }
    }

    async fn release(&self, workspace: &WorkspaceId, id: ReservationId, how: Release, now: Timestamp) {
        let mut shard = self.shard(workspace).lock();
        let Some(workspace) = shard.workspaces.get_mut(workspace) else { return };
        if workspace.reserved.remove(&id).is_none() {
            return;
        }
        if let Release::Settled { tokens, committed } = how {
            workspace.settled.push(Settled { tokens, committed, at: now });
        }
    }
}

impl Workspace {
    /// The user's bucket as it is at `now`; an untouched one where there is none.
    fn drained(&self, user: &UserId, limit: u64, now: Timestamp) -> Bucket {
        let mut bucket = self.buckets.get(user).map_or_else(|| Bucket::new(now), |(bucket, _)| *bucket);
        bucket.drain(limit, now);
        bucket
    }

    /// `Err` with what calls in flight hold, where only they stand in the way.
    fn check_budget(&mut self, ask: BudgetAsk, now: Timestamp) -> Result<(), Option<u64>> {
        match ask {
            BudgetAsk::Off => Ok(()),
            BudgetAsk::Gate { limit, used } => {
                if used < limit {
                    Ok(())
                } else {
                    Err(None)
                }
            }
            BudgetAsk::Reserve { limit, used, estimate, reading } => {
                self.reserved.retain(|_, reserved| reserved.deadline > now);
                self.settled.retain(|settled| now.ms_since(settled.at) < READING_LIFE_MS.unsigned_abs());
                let unseen = self.settled.iter().filter(|s| s.committed > reading).map(|s| s.tokens);
                let used = unseen.fold(used, u64::saturating_add);
                let held = self.reserved.values().map(|r| r.tokens).fold(0, u64::saturating_add);
                if used >= limit {
                    return Err(None);
                }
                // An estimate larger than the whole budget is let through while nothing else is, rather than never.
                let alone = used == 0 && held == 0;
                if alone || used.saturating_add(held).saturating_add(estimate) <= limit {
                    Ok(())
                } else if used.saturating_add(estimate) <= limit {
                    Err(Some(held))
                } else {
                    Err(None)
                }
            }
        }
    }
}

impl Shard {
    /// Forgets what is idle, now and then; and when full, the buckets that lose least by it.
    fn housekeeping(&mut self, now: Timestamp, max_buckets: usize) {
        self.decisions = self.decisions.wrapping_add(1);
        if !self.decisions.is_multiple_of(SWEEP_EVERY) && self.buckets < max_buckets {
            return;
        }
        for workspace in self.workspaces.values_mut() {
            workspace.buckets.retain(|_, (bucket, limit)| !bucket.is_idle(*limit, now));
        }
        self.count();
        if self.buckets >= max_buckets {
            let mut spent: Vec<u64> = self
                .workspaces
                .values()
                .flat_map(|w| w.buckets.values().map(|(bucket, _)| bucket.spent_units()))
                .collect();
            spent.sort_unstable();
            let median = spent[spent.len() / 2];
            for workspace in self.workspaces.values_mut() {
                workspace.buckets.retain(|_, (bucket, _)| bucket.spent_units() > median);
            }
            self.count();
        }
    }

    fn count(&mut self) {
        self.workspaces
            .retain(|_, w| !(w.buckets.is_empty() && w.reserved.is_empty() && w.settled.is_empty()));
        self.buckets = self.workspaces.values().map(|w| w.buckets.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    fn ask(user: &str, now: i64, rate: u64, budget: BudgetAsk) -> Ask {
        Ask {
            workspace: "acme".into(),
            user: user.into(),
            now: Timestamp(now),
            rate: Limit::from_number(rate),
            budget,
        }
    }

    fn reserve(used: u64, estimate: u64, reading: u64) -> BudgetAsk {
        BudgetAsk::Reserve { limit: 1_000, used, estimate, reading: Reading(reading) }
    }

    fn reservation(decision: Decision) -> ReservationId {
        match decision.verdict {
            Verdict::Admitted { reservation: Some(id) } => id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_hundred_at_once_on_a_full_bucket_of_twenty_admit_twenty() {
        let store = Arc::new(MemoryStore::default());
        let gate = Arc::new(Barrier::new(100));
        let threads: Vec<_> = (0..100)
            .map(|_| {
                let (store, gate) = (store.clone(), gate.clone());
                std::thread::spawn(move || {
                    gate.wait();
                    store.decide_now(&ask("eve", 5_000, 20, BudgetAsk::Off)).verdict
                })
            })
            .collect();
        let verdicts: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert_eq!(verdicts.iter().filter(|v| matches!(v, Verdict::Admitted { .. })).count(), 20);
        assert!(verdicts.contains(&Verdict::OverRate { wait_ms: 3_000 }));
    }

    #[test]
    fn over_both_the_budget_is_named_and_nothing_is_charged() {
        let store = MemoryStore::default();
        let spent = BudgetAsk::Gate { limit: 100, used: 120 };
        for _ in 0..5 {
            let decision = store.decide_now(&ask("eve", 0, 1, spent));
            assert_eq!(decision.verdict, Verdict::OverBudget { reserved: None });
            assert_eq!(decision.rate.unwrap().remaining, 1);
        }
        let under = BudgetAsk::Gate { limit: 100, used: 99 };
        assert!(matches!(store.decide_now(&ask("eve", 0, 1, under)).verdict, Verdict::Admitted { .. }));
        assert_eq!(
            store.decide_now(&ask("eve", 0, 1, spent)).verdict,
            Verdict::OverBudget { reserved: None }
        );
        assert_eq!(store.decide_now(&ask("eve", 0, 1, under)).verdict, Verdict::OverRate { wait_ms: 60_000 });
    }

    #[test]
    fn a_disabled_rate_counts_nothing() {
        let store = MemoryStore::default();
        for _ in 0..10 {
            assert_eq!(store.decide_now(&ask("eve", 0, 0, BudgetAsk::Off)).rate, None);
        }
        assert_eq!(store.decide_now(&ask("eve", 0, 5, BudgetAsk::Off)).rate.unwrap().remaining, 4);
    }

    #[tokio::test]
    async fn reservations_hold_until_the_usage_is_in_the_reading() {
        let store = MemoryStore::default();
        let workspace = WorkspaceId::from("acme");
        let first = reservation(store.decide_now(&ask("eve", 0, 0, reserve(0, 400, 1))));
        let second = reservation(store.decide_now(&ask("eve", 0, 0, reserve(0, 400, 2))));
        assert_eq!(
            store.decide_now(&ask("eve", 0, 0, reserve(0, 400, 3))).verdict,
            Verdict::OverBudget { reserved: Some(800) }
        );
        let settled = Release::Settled { tokens: 320, committed: Reading(5) };
        store.release(&workspace, first, settled, Timestamp(1)).await;
        store.release(&workspace, first, settled, Timestamp(1)).await;
        // A reading from before the commit does not have the 320 yet: they still count.
        assert_eq!(
            store.decide_now(&ask("eve", 2, 0, reserve(0, 400, 4))).verdict,
            Verdict::OverBudget { reserved: Some(400) }
        );
        let late = reservation(store.decide_now(&ask("eve", 2, 0, reserve(320, 280, 6))));
        store.release(&workspace, second, Release::Unused, Timestamp(3)).await;
        store.release(&workspace, late, Release::Unused, Timestamp(3)).await;
        assert!(matches!(
            store.decide_now(&ask("eve", 4, 0, reserve(320, 680, 7))).verdict,
            Verdict::Admitted { .. }
        ));
        // Nobody ended that one: it ends by itself.
        assert!(matches!(
            store.decide_now(&ask("eve", 5 + RESERVATION_LIFE_MS, 0, reserve(320, 680, 8))).verdict,
            Verdict::Admitted { .. }
        ));
    }

    #[test]
    fn an_estimate_larger_than_the_budget_is_let_through_alone() {
        let store = MemoryStore::default();
        reservation(store.decide_now(&ask("eve", 0, 0, reserve(0, 5_000, 1))));
        let next = store.decide_now(&ask("eve", 0, 0, reserve(0, 10, 2))).verdict;
        assert_eq!(next, Verdict::OverBudget { reserved: Some(5_000) });
        let spent = store.decide_now(&ask("eve", 0, 0, reserve(1_000, 1, 3))).verdict;
        assert_eq!(spent, Verdict::OverBudget { reserved: None });
    }

    #[test]
    fn idle_buckets_are_forgotten_and_the_number_is_bounded() {
        let store = MemoryStore::with_capacity(1_600);
        for n in 0..50_000 {
            store.decide_now(&ask(&format!("user-{n}"), 0, 20, BudgetAsk::Off));
        }
        assert!(store.buckets() <= 1_600, "{}", store.buckets());
        for _ in 0..=SWEEP_EVERY {
            store.decide_now(&ask("eve", 120_000, 20, BudgetAsk::Off));
        }
        assert_eq!(store.buckets(), 1);
    }
}
