//! Which server processes share the database: each tells the others that it lives, and counts them.
//!
//! Every [`BEAT_EVERY`] a process raises the `beat` of its own row and looks at those of the others.
//! One that was found unchanged in [`SILENT_LOOKS`] looks in a row counts no longer, and its row is
//! removed. No clock is compared with another machine's, nor with one's own: looks that the database
//! didn't answer are none, so an outage makes nobody look dead, and the last count stays meanwhile.
//! What the count is for (shares of a limit, what pages say) is left to others.

mod modes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::store::Store;

pub use modes::Modes;

const BEAT_EVERY: Duration = Duration::from_secs(2);
/// With one look a beat: ten seconds.
const SILENT_LOOKS: u32 = 5;

/// Names a run of the server among all that share a database.
pub type ReplicaId = Arc<str>;

/// An id that no other run has.
pub fn new_id() -> ReplicaId {
    format!("{:016x}", rand::random::<u64>()).into()
}

/// Clones share one row.
#[derive(Clone)]
pub struct Replicas(Arc<Inner>);

struct Inner {
    id: ReplicaId,
    store: Store,
    clock: SharedClock,
    started_at_ms: i64,
    others: Mutex<HashMap<String, Other>>,
    count: watch::Sender<u32>,
}

/// What was last seen of another process.
struct Other {
    beat: i64,
    /// Looks since then that found it unchanged.
    silent: u32,
}

impl Replicas {
    /// Knows of nobody yet, and is known to nobody.
    pub fn new(store: Store, clock: SharedClock, id: ReplicaId) -> Self {
        let started_at_ms = clock.now().ms();
        let (count, _) = watch::channel(1);
        Self(Arc::new(Inner { id, store, clock, started_at_ms, others: Mutex::default(), count }))
    }

    /// Shows this process to the others, and keeps doing so until `stop`; to be called when nothing of
    /// its start can fail any more.
    pub async fn join(&self, stop: CancellationToken) {
        self.beat().await;
        tokio::spawn(stop.run_until_cancelled_owned(self.clone().run()));
    }

    pub fn id(&self) -> &ReplicaId {
        &self.0.id
    }

    /// How many live, this one included.
    pub fn count(&self) -> watch::Receiver<u32> {
        self.0.count.subscribe()
    }

    /// Takes this process off the list; to be called when it no longer admits anything.
    pub async fn leave(&self) {
        let left = async {
            let mut tx = self.0.store.begin_counting().await?;
            sqlx::query("DELETE FROM replicas WHERE id = $1")
                .bind(self.0.id.to_string())
                .execute(&mut *tx)
                .await?;
            tx.commit().await
        };
        if let Ok(Err(error)) = tokio::time::timeout(BEAT_EVERY, left).await {
            tracing::debug!(%error, "the others will notice by themselves that this replica has stopped");
        }
    }

    async fn run(self) {
        let mut ticks = tokio::time::interval(BEAT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.beat().await;
        }
    }

    /// One sign of life and one look.
    async fn beat(&self) {
        match tokio::time::timeout(BEAT_EVERY, self.try_beat()).await {
            Ok(Ok(())) => {}
            // The parts that can't go on without the database say so, more than once.
            Ok(Err(error)) => tracing::debug!(%error, "the other replicas can't be seen"),
            Err(_) => tracing::debug!("the other replicas can't be seen: the database does not answer"),
        }
    }

    async fn try_beat(&self) -> Result<(), sqlx::Error> {
        let Inner { id, store, clock, started_at_ms, .. } = &*self.0;
        let mut tx = store.begin_counting().await?;
        sqlx::query(
            "INSERT INTO replicas (id, started_at_ms, seen_at_ms, beat) VALUES ($1, $2, $3, 1)
             ON CONFLICT (id) DO UPDATE SET seen_at_ms = excluded.seen_at_ms, beat = replicas.beat + 1",
        )
        .bind(id.to_string())
        .bind(*started_at_ms)
        .bind(clock.now().ms())
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;

        let rows: Vec<(String, i64)> =
            sqlx::query_as("SELECT id, beat FROM replicas").fetch_all(store.read()).await?;
        let silent = self.look(rows);
        if !silent.is_empty() {
            let mut tx = store.begin_counting().await?;
            for (id, beat) in silent {
                // Unless it just woke up.
                sqlx::query("DELETE FROM replicas WHERE id = $1 AND beat = $2")
                    .bind(id)
                    .bind(beat)
                    .execute(&mut *tx)
                    .await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }

    /// Counts those that live, and returns the rows of those that don't.
    fn look(&self, rows: Vec<(String, i64)>) -> Vec<(String, i64)> {
        let mut others = self.0.others.lock();
        let mut before = std::mem::take(&mut *others);
        let mut silent = Vec::new();
        for (id, beat) in rows.into_iter().filter(|(id, _)| **id != *self.0.id) {
            let looks =
                before.remove(&id).filter(|other| other.beat == beat).map_or(0, |other| other.silent + 1);
            if looks >= SILENT_LOOKS {
                silent.push((id.clone(), beat));
            }
            others.insert(id, Other { beat, silent: looks });
        }
        let living = others.values().filter(|other| other.silent < SILENT_LOOKS).count();
        let count = u32::try_from(living).unwrap_or(u32::MAX).saturating_add(1);
        self.0.count.send_if_modified(|known| std::mem::replace(known, count) != count);
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::model::Timestamp;
    use crate::store::testing::fresh;

    #[tokio::test]
    async fn each_sees_the_others_until_they_leave_or_fall_silent() {
        let fresh = fresh().await;
        // Clocks that are hours apart: none is looked at.
        let replica =
            |id: &str, at| Replicas::new(fresh.store.clone(), ManualClock::new(Timestamp(at)), id.into());
        let [a, b, c] = [replica("a", 0), replica("b", 10_000_000), replica("c", -10_000_000)];
        let counts = || [&a, &b, &c].map(|replica| *replica.count().borrow());
        assert_eq!(counts(), [1, 1, 1]);
        for _ in 0..2 {
            for replica in [&a, &b, &c] {
                replica.beat().await;
            }
        }
        assert_eq!(counts(), [3, 3, 3]);

        b.leave().await;
        a.beat().await;
        c.beat().await;
        assert_eq!(counts(), [2, 3, 2]);

        // `c` falls silent. The first look still finds a new beat; after that it counts for so many more.
        for _ in 0..=SILENT_LOOKS {
            assert_eq!(*a.count().borrow(), 2);
            a.beat().await;
        }
        assert_eq!(*a.count().borrow(), 1);
        a.beat().await;
        let left: Vec<String> =
            sqlx::query_scalar("SELECT id FROM replicas").fetch_all(fresh.store.read()).await.unwrap();
        assert_eq!(left, ["a"], "nothing is left of the silent");

        // It had only been asleep.
        c.beat().await;
        a.beat().await;
        assert_eq!((*a.count().borrow(), *c.count().borrow()), (2, 2));
    }

    #[tokio::test]
    async fn the_count_stays_while_the_database_is_away() {
        let fresh = fresh().await;
        let replica =
            |id: &str| Replicas::new(fresh.store.clone(), ManualClock::new(Timestamp(0)), id.into());
        let [a, b] = [replica("a"), replica("b")];
        b.beat().await;
        a.beat().await;
        fresh.store.close().await;
        for _ in 0..2 * SILENT_LOOKS {
            a.beat().await;
        }
        assert_eq!(*a.count().borrow(), 2);
    }
}
