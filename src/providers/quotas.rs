//! Every provider key kept under its quotas: the one place where calls are counted.
//!
//! What a window counts is what `rate_limit_usage` holds of it (read at start, see `history`), what
//! was counted since and is on its way there, and what is in flight. So memory never knows less
//! than the table does of this process's calls; what other replicas wrote is counted within half a
//! second of its commit. A check needs no database, and selection goes on while the database is
//! away: [`UsageSink`] keeps what it could not write yet. Check and reservation are one step under one
//! lock, over all windows and caps of all candidates.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Failure;
use super::book::{Book, CandidateId, Entry, Gauge, KeyId, Limits, Obstacle};
use super::cooldown::{Consequence, Cooldown, consequence};
use super::link::StatedLimits;
use super::shared::{LeaseAsk, LeaseEvent, LeaseNumber, SharedLeases, Taken};
use super::windows::Span;
use crate::clock::SharedClock;
use crate::ledger::{Meter, StepUsage, WindowKind, WindowRow};
use crate::model::Timestamp;

/// Where counted calls are written: in groups, in the background, tried again while the database
/// doesn't answer.
pub trait UsageSink: Send + Sync + 'static {
    fn record(&self, rows: Vec<WindowRow>);
}

/// The counts and cooldowns of all candidates. Clones share them.
#[derive(Clone)]
pub struct Quotas {
    book: Arc<Mutex<Book>>,
    clock: SharedClock,
    sink: Arc<dyn UsageSink>,
    /// The other replicas' calls; none where this is the only one.
    shared: Option<Arc<dyn SharedLeases>>,
}

/// What a call may come to: `fixed + per_typical_output × what the model typically puts out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    pub fixed: u64,
    pub per_typical_output: u64,
}

impl Estimate {
    /// From a function that is told the typical output.
    pub fn of(tokens: impl Fn(u64) -> u64) -> Self {
        let fixed = tokens(0);
        Self { fixed, per_typical_output: tokens(1).saturating_sub(fixed) }
    }

    fn at(self, typical_output: u64) -> u64 {
        self.fixed.saturating_add(self.per_typical_output.saturating_mul(typical_output))
    }
}

/// A candidate as selection sees it.
pub(super) struct Contender<'a> {
    pub id: &'a CandidateId,
    /// Lower is tried first.
    pub priority: i64,
}

/// How a candidate stands, for people.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Requests and tokens of the minute and the day, and the day's cap.
    pub gauges: [Gauge; 5],
    pub cooldown: Option<Cooldown>,
    /// Calls from selection to their end.
    pub in_flight: u64,
    /// What the provider says of its own limits.
    pub stated: StatedLimits,
}

impl Quotas {
    pub fn new(clock: SharedClock, sink: Arc<dyn UsageSink>) -> Self {
        Self { book: Arc::default(), clock, sink, shared: None }
    }

    /// The same, with every lease taken among those of all replicas too.
    pub fn with_shared(self, shared: Option<Arc<dyn SharedLeases>>) -> Self {
        Self { shared, ..self }
    }

    /// Counts a request of a candidate, in memory at once and in the table soon. The pool counts its
    /// own calls; this is for those made elsewhere.
    pub fn record_request(&self, id: &CandidateId) {
        self.sink.record(vec![self.count(id, WindowKind::Request, 0)]);
    }

    /// Counts a call's tokens, likewise.
    pub fn record_tokens(&self, id: &CandidateId, tokens: u64) {
        self.sink.record(vec![self.count(id, WindowKind::Tokens, tokens)]);
    }

    /// Whether one more request fits into the candidate's minute, its day and its key's cap, those
    /// in flight counted. A reading: only the pool's own reservation holds the place.
    pub fn can_make_request(&self, id: &CandidateId) -> bool {
        self.room(id, |gauge| !gauge.kind.counts_tokens() && !gauge.has_room(0))
    }

    /// Whether `estimate` tokens fit into the candidate's minute and day, those in flight counted.
    pub fn can_use_tokens(&self, id: &CandidateId, estimate: u64) -> bool {
        self.room(id, |gauge| gauge.kind.counts_tokens() && !gauge.has_room(estimate))
    }

    /// Whether the key has room under its provider-wide cap of the UTC day.
    pub fn can_use_provider(&self, platform: &str, key_id: &str) -> bool {
        let now = self.clock.now();
        let key: KeyId = (platform.into(), key_id.into());
        self.book.lock().key(&key).is_none_or(|key| {
            key.cap.is_none_or(|cap| key.day.used(now).saturating_add(key.open_requests) < cap)
        })
    }

    /// How a candidate stands now; nothing where it isn't one.
    pub fn status(&self, id: &CandidateId) -> Option<Standing> {
        let now = self.clock.now();
        let mut book = self.book.lock();
        let mut entry = book.entry(id)?;
        Some(Standing {
            gauges: entry.gauges(now),
            cooldown: entry.cooldown(now),
            in_flight: entry.slot.leases,
            stated: entry.slot.stated,
        })
    }

    /// Takes the candidates, limits and caps that hold from now on. Counts and cooldowns of those that stay are kept.
    pub(super) fn install<'a>(&self, all: impl Iterator<Item = (&'a CandidateId, Limits, Option<u64>)>) {
        let now = self.clock.now();
        let mut book = self.book.lock();
        let mut current = HashSet::new();
        for (id, limits, cap) in all {
            let entry = book.entry_or_new(id, now);
            entry.slot.limits = limits;
            entry.key.cap = cap;
            current.insert(id);
        }
        book.retain(&current, now);
    }

    /// Enters what the table has: `amount` at `at`, in the windows of one span. A time to come (a
    /// clock was set back) counts from now.
    pub(super) fn restore(&self, id: &CandidateId, at: Timestamp, span: Span, kind: WindowKind, amount: u64) {
        let now = self.clock.now();
        let mut book = self.book.lock();
        let mut entry = book.entry_or_new(id, now);
        entry.restore(at.min(now), span, kind, amount);
        if span == Span::Day && kind == WindowKind::Request && at.min(now).day() == now.day() {
            entry.key.day.record(now, amount);
        }
    }

    /// Counts what another replica's calls used, from now on: its clock may differ from this one's.
    pub(super) fn count_elsewhere(&self, id: &CandidateId, kind: WindowKind, amount: u64) {
        let now = self.clock.now();
        self.book.lock().entry_or_new(id, now).record(now, kind, amount);
    }

    /// Ends the cooldowns of a key and of all its models. False where there was none.
    pub(super) fn clear_key(&self, platform: &str, key_id: &str) -> bool {
        let now = self.clock.now();
        let key: KeyId = (platform.into(), key_id.into());
        let mut book = self.book.lock();
        let mut was = false;
        for cooling in book.coolings_of(&key) {
            was |= cooling.clear(now);
        }
        was
    }

    /// Ends the cooldowns of a candidate and of its key. The one that was in force, where there was one.
    pub(super) fn clear(&self, id: &CandidateId) -> Option<Cooldown> {
        let now = self.clock.now();
        let mut book = self.book.lock();
        let entry = book.entry(id)?;
        let was = entry.cooldown(now);
        entry.slot.cooling.clear(now);
        entry.key.cooling.clear(now);
        was
    }

    /// Holds the place of a call to this very candidate, whatever its cooldown says and whether or not its key
    /// is enabled. Where there is no room, why.
    pub(super) fn reserve_one(
        &self,
        id: &CandidateId,
        limits: Limits,
        cap: Option<u64>,
        estimate: Estimate,
    ) -> Result<Lease, Obstacle> {
        let now = self.clock.now();
        let mut book = self.book.lock();
        let mut entry = book.entry_or_new(id, now);
        entry.slot.limits = limits;
        entry.key.cap = cap;
        let tokens = estimate.at(entry.slot.typical_output);
        if entry.room(now, tokens).is_none() {
            return Err(entry.obstacle(now, tokens));
        }
        Ok(self.lease(id, estimate, &mut entry))
    }

    /// Writes what calls count that has no settlement to go with.
    pub(super) fn write(&self, rows: Vec<WindowRow>) {
        self.sink.record(rows);
    }

    /// Chooses among the contenders that `skip` leaves and holds its place: by priority, then by most
    /// headroom, then by order. `last_resort`: where all that have room are on cooldowns that no
    /// provider stated, the one whose cooldown ends first is chosen.
    pub(super) fn reserve(
        &self,
        contenders: &[Contender<'_>],
        skip: impl Fn(usize) -> bool,
        estimate: Estimate,
        last_resort: bool,
    ) -> Option<(usize, Lease)> {
        let now = self.clock.now();
        let mut book = self.book.lock();
        let mut best: Option<(i64, u64, usize)> = None;
        let mut resort: Option<(Timestamp, usize)> = None;
        for (at, contender) in contenders.iter().enumerate().filter(|(at, _)| !skip(*at)) {
            let Some(mut entry) = book.entry(contender.id) else {
                continue;
            };
            let tokens = estimate.at(entry.slot.typical_output);
            let Some(headroom) = entry.room(now, tokens) else {
                continue;
            };
            match entry.cooldown(now) {
                None => {
                    let rank = (contender.priority, u64::MAX - headroom, at);
                    best = Some(best.map_or(rank, |other| other.min(rank)));
                }
                Some(cooldown) if last_resort && !cooldown.stated => {
                    let rank = (cooldown.until, at);
                    resort = Some(resort.map_or(rank, |other| other.min(rank)));
                }
                Some(_) => {}
            }
        }
        let at = best.map(|(_, _, at)| at).or(resort.map(|(_, at)| at))?;
        let mut entry = book.entry(contenders[at].id)?;
        Some((at, self.lease(contenders[at].id, estimate, &mut entry)))
    }

    /// What stands between a call and each of the contenders.
    pub(super) fn obstacles(&self, contenders: &[Contender<'_>], estimate: Estimate) -> Vec<Obstacle> {
        let now = self.clock.now();
        let mut book = self.book.lock();
        let obstacle = |contender: &Contender<'_>| {
            book.entry(contender.id).map_or(Obstacle::Gone, |mut entry| {
                let tokens = estimate.at(entry.slot.typical_output);
                entry.obstacle(now, tokens)
            })
        };
        contenders.iter().map(obstacle).collect()
    }

    fn lease(&self, id: &CandidateId, estimate: Estimate, entry: &mut Entry<'_>) -> Lease {
        let tokens = estimate.at(entry.slot.typical_output);
        entry.slot.leases += 1;
        entry.slot.open_requests += 1;
        entry.slot.open_tokens = entry.slot.open_tokens.saturating_add(tokens);
        entry.key.open_requests += 1;
        let generations = (entry.slot.cooling.generation(), entry.key.cooling.generation());
        Lease { quotas: self.clone(), id: id.clone(), tokens, unanswered: true, generations, shared: None }
    }

    fn count(&self, id: &CandidateId, kind: WindowKind, tokens: u64) -> WindowRow {
        let now = self.clock.now();
        let mut book = self.book.lock();
        book.entry_or_new(id, now).record(now, kind, amount(kind, tokens));
        row(id, kind, tokens, now)
    }

    fn room(&self, id: &CandidateId, is_full: impl Fn(&Gauge) -> bool) -> bool {
        let now = self.clock.now();
        self.book.lock().entry(id).is_none_or(|mut entry| !entry.gauges(now).iter().any(is_full))
    }
}

/// A place held for one call: it counts as in flight until it is settled, and is given up when
/// dropped, whatever the reason.
pub(super) struct Lease {
    quotas: Quotas,
    id: CandidateId,
    tokens: u64,
    unanswered: bool,
    /// Of the candidate's cooldown and of its key's, when the call began.
    generations: (u64, u64),
    /// The place among all replicas' calls.
    shared: Option<LeaseNumber>,
}

impl Lease {
    /// Takes a place among the calls of all replicas too. False where they leave none.
    pub(super) async fn is_confirmed(&mut self) -> bool {
        let Some(shared) = &self.quotas.shared else { return true };
        let gauges = {
            let mut book = self.quotas.book.lock();
            let Some(mut entry) = book.entry(&self.id) else { return true };
            entry.gauges(self.quotas.clock.now())
        };
        let gauges = gauges.map(|gauge| {
            let own = if gauge.kind.counts_tokens() { self.tokens } else { 1 };
            Gauge { in_flight: gauge.in_flight.saturating_sub(own), ..gauge }
        });
        let ask = LeaseAsk { id: self.id.clone(), gauges, tokens: self.tokens };
        match shared.take(ask).await {
            Taken::Yes(lease) => {
                self.shared = Some(lease);
                true
            }
            Taken::Uncounted => true,
            Taken::No => false,
        }
    }

    fn tell(&self, event: LeaseEvent) {
        if let (Some(shared), Some(lease)) = (&self.quotas.shared, self.shared) {
            shared.tell(lease, event);
        }
    }

    /// The provider answered well: the request counts from now, and no longer as in flight.
    pub(super) fn answered(&mut self, stated: StatedLimits) {
        self.tell(LeaseEvent::Answered);
        let now = self.quotas.clock.now();
        let mut book = self.quotas.book.lock();
        if let Some(mut entry) = book.entry(&self.id) {
            close_request(&mut entry, &mut self.unanswered);
            entry.record(now, WindowKind::Request, 1);
            entry.slot.cooling.succeed();
            entry.key.cooling.succeed();
            entry.slot.stated = StatedLimits {
                requests: stated.requests.or(entry.slot.stated.requests),
                tokens: stated.tokens.or(entry.slot.stated.tokens),
            };
        }
        drop(book);
        self.quotas.sink.record(vec![row(&self.id, WindowKind::Request, 0, now)]);
    }

    /// The call failed: its candidate cools down, and a request that the provider answered counts.
    pub(super) fn failed(mut self, failure: &Failure) -> Consequence {
        let consequence = consequence(failure);
        if consequence.counts {
            self.tell(LeaseEvent::Answered);
        }
        let now = self.quotas.clock.now();
        let mut book = self.quotas.book.lock();
        if let Some(mut entry) = book.entry(&self.id) {
            close_request(&mut entry, &mut self.unanswered);
            if consequence.whole_key {
                entry.key.cooling.fail(now, &consequence, self.generations.1);
            } else {
                entry.slot.cooling.fail(now, &consequence, self.generations.0);
            }
            if consequence.counts {
                entry.record(now, WindowKind::Request, 1);
            }
        }
        drop(book);
        if consequence.counts {
            self.quotas.sink.record(vec![row(&self.id, WindowKind::Request, 0, now)]);
        }
        consequence
    }

    /// The call is over: its real tokens count from now, however many were held. The row is written
    /// with the request's usage, or soon where the request calls once more.
    pub(super) fn settle(mut self, step: &StepUsage, meter: &Meter) {
        let now = self.quotas.clock.now();
        let tokens = step.usage.total();
        self.tell(LeaseEvent::Settled { tokens });
        let mut book = self.quotas.book.lock();
        if let Some(mut entry) = book.entry(&self.id) {
            entry.slot.open_tokens = entry.slot.open_tokens.saturating_sub(std::mem::take(&mut self.tokens));
            entry.record(now, WindowKind::Tokens, tokens);
            let typical = &mut entry.slot.typical_output;
            // Never 0: a call's output is held, however short the last ones were.
            *typical = (typical.saturating_mul(7).saturating_add(step.usage.output_tokens) / 8).max(1);
        }
        drop(book);
        if let Some(earlier) = meter.keep_window_row(row(&self.id, WindowKind::Tokens, tokens, now)) {
            self.quotas.sink.record(vec![earlier]);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.tell(LeaseEvent::Ended);
        let mut book = self.quotas.book.lock();
        let Some(mut entry) = book.entry(&self.id) else {
            return;
        };
        close_request(&mut entry, &mut self.unanswered);
        entry.slot.open_tokens = entry.slot.open_tokens.saturating_sub(self.tokens);
        entry.slot.leases = entry.slot.leases.saturating_sub(1);
    }
}

fn close_request(entry: &mut Entry<'_>, unanswered: &mut bool) {
    if std::mem::take(unanswered) {
        entry.slot.open_requests = entry.slot.open_requests.saturating_sub(1);
        entry.key.open_requests = entry.key.open_requests.saturating_sub(1);
    }
}

fn amount(kind: WindowKind, tokens: u64) -> u64 {
    match kind {
        WindowKind::Request => 1,
        WindowKind::Tokens => tokens,
    }
}

fn row(id: &CandidateId, kind: WindowKind, tokens: u64, created_at: Timestamp) -> WindowRow {
    WindowRow {
        platform: id.platform.clone(),
        model_id: id.model.clone(),
        key_id: id.key.clone(),
        kind,
        tokens,
        created_at,
    }
}
