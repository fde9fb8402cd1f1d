//! What one replica knows by itself, and how it decides while Redis does not answer: it holds its share of the
//! limits, so that all replicas together hold the whole.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::super::bucket::Bucket;
use super::super::memory::{MemoryStore, RESERVATION_LIFE_MS};
use super::super::store::{Ask, BudgetAsk, Decision, ReservationId, Verdict};
use crate::model::{Day, Limit, RateState, Timestamp, UserId, WorkspaceId};

pub(super) struct Local {
    /// What this replica admitted, through Redis or without: losing Redis grants nobody a fresh burst.
    buckets: MemoryStore,
    books: Mutex<Books>,
    /// How many replicas there are.
    replicas: watch::Receiver<u32>,
}

#[derive(Default)]
struct Books {
    reservations: u64,
    workspaces: HashMap<WorkspaceId, Book>,
    /// What was admitted without Redis and is not yet in its bucket, with the rate at which it drains.
    owed: HashMap<(WorkspaceId, UserId), (Bucket, u64)>,
}

#[derive(Default)]
struct Book {
    /// This replica's calls in flight.
    held: HashMap<ReservationId, Held>,
    /// Since this workspace's first decision without Redis.
    alone: Option<Alone>,
}

struct Held {
    tokens: u64,
    /// Lost, if it has not ended by then.
    deadline: Timestamp,
}

struct Alone {
    day: Day,
    /// The day's total at the first decision.
    used: u64,
    /// What this replica's calls used since.
    spent: u64,
}

/// Units of a bucket on their way to Redis: they are owed again if they don't arrive.
pub(super) struct Owed<'l> {
    local: &'l Local,
    key: (WorkspaceId, UserId),
    bucket: Bucket,
    rate: u64,
}

impl Owed<'_> {
    pub(super) fn units(&self) -> u64 {
        self.bucket.spent_units()
    }

    pub(super) fn paid(mut self) {
        self.bucket = Bucket::new(Timestamp(0));
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        if self.units() > 0 {
            let mut books = self.local.books.lock();
            let units = self.units();
            books
                .owed
                .entry(self.key.clone())
                .and_modify(|(bucket, _)| bucket.add(units))
                .or_insert((self.bucket, self.rate));
        }
    }
}

impl Local {
    pub(super) fn new(replicas: watch::Receiver<u32>) -> Self {
        Self { buckets: MemoryStore::default(), books: Mutex::default(), replicas }
    }

    pub(super) fn next_reservation(&self) -> ReservationId {
        let mut books = self.books.lock();
        books.reservations += 1;
        ReservationId(books.reservations)
    }

    /// This replica's share of a rate. Never 0, or small limits would admit nobody.
    fn share(&self, limit: u64) -> u64 {
        (limit / self.replicas()).max(1)
    }

    fn replicas(&self) -> u64 {
        u64::from(*self.replicas.borrow()).max(1)
    }

    /// Takes what the user owes Redis.
    pub(super) fn owed(&self, ask: &Ask) -> Owed<'_> {
        let key = (ask.workspace.clone(), ask.user.clone());
        let rate = self.share(ask.rate.number());
        let taken = self.books.lock().owed.remove(&key);
        let mut bucket = taken.map_or_else(|| Bucket::new(ask.now), |(bucket, _)| bucket);
        bucket.drain(rate, ask.now);
        Owed { local: self, key, bucket, rate }
    }

    /// Remembers what Redis decided.
    pub(super) fn remember(&self, ask: &Ask, verdict: Verdict) {
        if let Verdict::Admitted { .. } = verdict
            && let Limit::Of(limit) = ask.rate
        {
            self.buckets.spend(&ask.workspace, &ask.user, self.share(limit), ask.now);
        }
        let BudgetAsk::Reserve { estimate, .. } = ask.budget else { return };
        let mut books = self.books.lock();
        let book = books.workspaces.entry(ask.workspace.clone()).or_default();
        book.alone = None;
        if let Verdict::Admitted { reservation: Some(id) } = verdict {
            book.hold(id, estimate, ask.now);
        }
        books.forget_if_empty(&ask.workspace);
    }

    /// Decides without Redis. `reservation` is the call's, if it is admitted in reserve mode.
    pub(super) fn decide(&self, ask: &Ask, reservation: Option<ReservationId>) -> Decision {
        let mut books = self.books.lock();
        if let Err(reserved) = self.check_budget(&mut books, ask) {
            let rate = ask.rate.value().map(|limit| self.peek(&ask.workspace, &ask.user, limit, ask.now));
            return Decision { verdict: Verdict::OverBudget { reserved }, rate };
        }
        let share = ask.rate.value().map(|limit| self.share(limit));
        let rate_alone =
            Ask { rate: share.map_or(Limit::Disabled, Limit::Of), budget: BudgetAsk::Off, ..ask.clone() };
        let Decision { mut verdict, rate } = self.buckets.decide_now(&rate_alone);
        if let Verdict::Admitted { .. } = verdict {
            if let Some(share) = share {
                let key = (ask.workspace.clone(), ask.user.clone());
                let (owed, rate) = books.owed.entry(key).or_insert((Bucket::new(ask.now), share));
                *rate = share;
                owed.drain(share, ask.now);
                owed.spend_one();
            }
            if let (Some(id), BudgetAsk::Reserve { estimate, .. }) = (reservation, ask.budget) {
                let book = books.workspaces.entry(ask.workspace.clone()).or_default();
                book.hold(id, estimate, ask.now);
            }
            verdict = Verdict::Admitted { reservation };
        }
        Decision {
            verdict,
            rate: rate.zip(ask.rate.value()).map(|(state, limit)| RateState { limit, ..state }),
        }
    }

    /// What was left at the first decision without Redis, divided by the replicas: this one's calls since,
    /// those in flight among them, stay within that. `Err` with what is set aside for others, where only that stands in the way.
    fn check_budget(&self, books: &mut Books, ask: &Ask) -> Result<(), Option<u64>> {
        match ask.budget {
            BudgetAsk::Off => Ok(()),
            BudgetAsk::Gate { limit, used } => (used < limit).then_some(()).ok_or(None),
            BudgetAsk::Reserve { limit, used, estimate, .. } => {
                let day = ask.now.day();
                let book = books.workspaces.entry(ask.workspace.clone()).or_default();
                if book.alone.as_ref().is_none_or(|alone| alone.day != day) {
                    book.alone = Some(Alone { day, used, spent: 0 });
                }
                let (first_used, spent) = book.alone.as_ref().map_or((used, 0), |a| (a.used, a.spent));
                let left = limit.saturating_sub(used);
                let room = (limit.saturating_sub(first_used) / self.replicas())
                    .saturating_sub(spent)
                    .min(left)
                    .saturating_sub(book.held());
                if estimate <= room && left > 0 {
                    Ok(())
                } else if estimate <= left && left > 0 {
                    Err(Some(left - room))
                } else {
                    Err(None)
                }
            }
        }
    }

    /// The bucket as this replica knows it, in terms of the whole limit.
    pub(super) fn peek(
        &self,
        workspace: &WorkspaceId,
        user: &UserId,
        limit: u64,
        now: Timestamp,
    ) -> RateState {
        RateState { limit, ..self.buckets.peek_now(workspace, user, self.share(limit), now) }
    }

    /// Takes one request back out of the user's bucket. True where Redis need not do so too, since it was never
    /// told of a request.
    pub(super) fn give_back(
        &self,
        workspace: &WorkspaceId,
        user: &UserId,
        limit: u64,
        now: Timestamp,
    ) -> bool {
        let share = self.share(limit);
        self.buckets.give_back_now(workspace, user, share, now);
        let mut books = self.books.lock();
        let Some((owed, _)) = books.owed.get_mut(&(workspace.clone(), user.clone())) else { return false };
        owed.drain(share, now);
        let was_owed = owed.spent_units() > 0;
        owed.give_back_one();
        was_owed
    }

    /// Ends a reservation: what it held, or nothing where it had ended already.
    pub(super) fn release(&self, workspace: &WorkspaceId, id: ReservationId, used: u64) -> Option<u64> {
        let mut books = self.books.lock();
        let book = books.workspaces.get_mut(workspace)?;
        let held = book.held.remove(&id)?;
        if let Some(alone) = &mut book.alone {
            alone.spent = alone.spent.saturating_add(used);
        }
        books.forget_if_empty(workspace);
        Some(held.tokens)
    }

    pub(super) fn holds(&self, workspace: &WorkspaceId, id: ReservationId) -> bool {
        self.books.lock().workspaces.get(workspace).is_some_and(|book| book.held.contains_key(&id))
    }

    /// This replica's calls in flight, with what they reserved. Forgets those that were lost, and what no
    /// longer matters.
    pub(super) fn in_flight(
        &self,
        now: Timestamp,
        redis_is_up: bool,
    ) -> Vec<(WorkspaceId, Vec<(ReservationId, u64)>)> {
        let mut books = self.books.lock();
        books.owed.retain(|_, (bucket, rate)| !bucket.is_idle(*rate, now));
        for book in books.workspaces.values_mut() {
            book.held.retain(|_, held| held.deadline > now);
            if redis_is_up {
                book.alone = None;
            }
        }
        books.workspaces.retain(|_, book| !book.is_empty());
        let of = |book: &Book| book.held.iter().map(|(id, held)| (*id, held.tokens)).collect();
        books.workspaces.iter().map(|(id, book)| (id.clone(), of(book))).collect()
    }
}

impl Books {
    fn forget_if_empty(&mut self, workspace: &WorkspaceId) {
        if self.workspaces.get(workspace).is_some_and(Book::is_empty) {
            self.workspaces.remove(workspace);
        }
    }
}

impl Book {
    fn hold(&mut self, id: ReservationId, tokens: u64, now: Timestamp) {
        self.held.insert(id, Held { tokens, deadline: now.plus_ms(RESERVATION_LIFE_MS) });
    }

    fn held(&self) -> u64 {
        self.held.values().map(|held| held.tokens).fold(0, u64::saturating_add)
    }

    fn is_empty(&self) -> bool {
        self.held.is_empty() && self.alone.is_none()
    }
}
