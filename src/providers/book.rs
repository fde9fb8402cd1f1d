//! The state of every candidate: windows, calls in flight, cooldowns. Plain data behind
//! [`Quotas`](super::Quotas), which holds the lock and the clock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::cooldown::{Cooldown, Cooling};
use super::link::StatedLimits;
use super::windows::{DayCount, Span, Window};
use crate::ledger::WindowKind;
use crate::model::Timestamp;

/// What a model is taken to put out until it has answered.
const TYPICAL_OUTPUT: u64 = 500;
/// How long to wait for a call in flight, whose end nobody knows.
const IN_FLIGHT_MS: u64 = 1_000;
/// How long to wait for a limit of 0.
const NEVER_MS: u64 = 86_400_000;

/// A model of a platform under one of its keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CandidateId {
    pub platform: Arc<str>,
    pub model: Arc<str>,
    pub key: Arc<str>,
}

impl CandidateId {
    pub fn new(platform: &str, model: &str, key: &str) -> Self {
        Self { platform: platform.into(), model: model.into(), key: key.into() }
    }

    pub(super) fn key_id(&self) -> KeyId {
        (self.platform.clone(), self.key.clone())
    }
}

/// Platform and key.
pub(super) type KeyId = (Arc<str>, Arc<str>);

/// The quotas of a model under one key; none is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub rpm: Option<u64>,
    pub rpd: Option<u64>,
    pub tpm: Option<u64>,
    pub tpd: Option<u64>,
}

/// What a count is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Rpm,
    Rpd,
    Tpm,
    Tpd,
    /// The provider-wide cap: requests of the key over all models since 00:00 UTC.
    ProviderDay,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Rpm => "requests per minute",
            Kind::Rpd => "requests per day",
            Kind::Tpm => "tokens per minute",
            Kind::Tpd => "tokens per day",
            Kind::ProviderDay => "requests of its key today",
        }
    }

    pub fn counts_tokens(self) -> bool {
        matches!(self, Kind::Tpm | Kind::Tpd)
    }
}

/// A count as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauge {
    pub kind: Kind,
    pub used: u64,
    pub in_flight: u64,
    pub limit: Option<u64>,
}

impl Gauge {
    /// The contract's rule, section 7. An estimate larger than the limit is let into an empty window:
    /// it would have to wait for ever.
    pub fn has_room(&self, estimate: u64) -> bool {
        let Some(limit) = self.limit else { return true };
        let taken = self.used.saturating_add(self.in_flight);
        if self.kind.counts_tokens() {
            taken.saturating_add(estimate) <= limit || (taken == 0 && limit > 0)
        } else {
            taken < limit
        }
    }

    /// What is left, in millionths of the limit.
    fn headroom(&self) -> u64 {
        let Some(limit) = self.limit.filter(|limit| *limit > 0) else {
            return 1_000_000;
        };
        let left = limit.saturating_sub(self.used.saturating_add(self.in_flight));
        u64::try_from(u128::from(left) * 1_000_000 / u128::from(limit)).unwrap_or(1_000_000)
    }
}

/// What stands between a request and a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    Full {
        gauges: Vec<Gauge>,
        frees_in_ms: u64,
    },
    Cooling(Cooldown),
    /// The candidate was removed, or has room again, a moment ago.
    Gone,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub limits: Limits,
    rpm: Window,
    rpd: Window,
    tpm: Window,
    tpd: Window,
    /// Calls from selection to their end.
    pub leases: u64,
    /// Those of them that the provider hasn't answered yet.
    pub open_requests: u64,
    pub open_tokens: u64,
    pub cooling: Cooling,
    /// What its answers put out, recent ones counting more.
    pub typical_output: u64,
    pub stated: StatedLimits,
}

#[derive(Debug)]
pub(super) struct KeySlot {
    pub cap: Option<u64>,
    pub day: DayCount,
    pub open_requests: u64,
    pub cooling: Cooling,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    slots: HashMap<CandidateId, Slot>,
    keys: HashMap<KeyId, KeySlot>,
}

/// A candidate's state with that of its key.
pub(super) struct Entry<'b> {
    pub slot: &'b mut Slot,
    pub key: &'b mut KeySlot,
}

impl Book {
    pub(super) fn entry(&mut self, id: &CandidateId) -> Option<Entry<'_>> {
        Some(Entry { slot: self.slots.get_mut(id)?, key: self.keys.get_mut(&id.key_id())? })
    }

    pub(super) fn entry_or_new(&mut self, id: &CandidateId, now: Timestamp) -> Entry<'_> {
        let slot = self.slots.entry(id.clone()).or_insert_with(Slot::new);
        let key = self.keys.entry(id.key_id()).or_insert_with(|| KeySlot {
            cap: None,
            day: DayCount::new(now),
            open_requests: 0,
            cooling: Cooling::default(),
        });
        Entry { slot, key }
    }

    pub(super) fn key(&mut self, id: &KeyId) -> Option<&mut KeySlot> {
        self.keys.get_mut(id)
    }

    /// Every cooldown of a key: its own and those of its models.
    pub(super) fn coolings_of(&mut self, id: &KeyId) -> impl Iterator<Item = &mut Cooling> {
        let own = self.keys.get_mut(id).map(|key| &mut key.cooling);
        let of_models = self.slots.iter_mut().filter(|(slot, _)| slot.platform == id.0 && slot.key == id.1);
        own.into_iter().chain(of_models.map(|(_, slot)| &mut slot.cooling))
    }

    /// Forgets what no longer is a candidate and counts nothing any more; what still counts stays, in
    /// case the candidate comes back.
    pub(super) fn retain(&mut self, current: &HashSet<&CandidateId>, now: Timestamp) {
        self.slots.retain(|id, slot| current.contains(id) || slot.leases > 0 || slot.counts_something(now));
        let keys: HashSet<KeyId> = self.slots.keys().map(CandidateId::key_id).collect();
        self.keys.retain(|id, _| keys.contains(id));
    }
}

impl Entry<'_> {
    /// All counts at `now`, in the order in which they are shown.
    pub(super) fn gauges(&mut self, now: Timestamp) -> [Gauge; 5] {
        let Self { slot, key } = self;
        let gauge = |kind, used, in_flight, limit| Gauge { kind, used, in_flight, limit };
        let Limits { rpm, rpd, tpm, tpd } = slot.limits;
        [
            gauge(Kind::Rpm, slot.rpm.used(now), slot.open_requests, rpm),
            gauge(Kind::Rpd, slot.rpd.used(now), slot.open_requests, rpd),
            gauge(Kind::Tpm, slot.tpm.used(now), slot.open_tokens, tpm),
            gauge(Kind::Tpd, slot.tpd.used(now), slot.open_tokens, tpd),
            gauge(Kind::ProviderDay, key.day.used(now), key.open_requests, key.cap),
        ]
    }

    /// The least headroom of all counts, in millionths; none where one has no room for `estimate`.
    pub(super) fn room(&mut self, now: Timestamp, estimate: u64) -> Option<u64> {
        self.gauges(now).iter().try_fold(1_000_000, |least: u64, gauge| {
            gauge.has_room(estimate).then(|| least.min(gauge.headroom()))
        })
    }

    /// The cooldown in force: the candidate's or its key's, one that the provider stated before others.
    pub(super) fn cooldown(&self, now: Timestamp) -> Option<Cooldown> {
        [&self.slot.cooling, &self.key.cooling]
            .into_iter()
            .filter_map(|cooling| cooling.at(now))
            .max_by_key(|cooldown| (cooldown.stated, cooldown.until))
    }

    /// Why there is no room, and when there will be.
    pub(super) fn obstacle(&mut self, now: Timestamp, estimate: u64) -> Obstacle {
        let full: Vec<Gauge> =
            self.gauges(now).into_iter().filter(|gauge| !gauge.has_room(estimate)).collect();
        let frees = full.iter().map(|gauge| self.frees_in_ms(gauge, now, estimate)).max();
        match (frees, self.cooldown(now)) {
            (Some(frees_in_ms), cooldown) => {
                let stated = cooldown.filter(|cooldown| cooldown.stated).map_or(0, |c| c.until.ms_since(now));
                Obstacle::Full { gauges: full, frees_in_ms: frees_in_ms.max(stated) }
            }
            (None, Some(cooldown)) => Obstacle::Cooling(cooldown),
            (None, None) => Obstacle::Gone,
        }
    }

    fn frees_in_ms(&mut self, gauge: &Gauge, now: Timestamp, estimate: u64) -> u64 {
        let limit = gauge.limit.unwrap_or(u64::MAX);
        if limit == 0 {
            return NEVER_MS;
        }
        let more = if gauge.kind.counts_tokens() { estimate } else { 1 };
        let over = gauge.used.saturating_add(gauge.in_flight).saturating_add(more).saturating_sub(limit);
        // A call too large for the limit goes into the empty window.
        let needed = if more > limit && gauge.in_flight == 0 { gauge.used } else { over };
        let window = match gauge.kind {
            Kind::Rpm => &mut self.slot.rpm,
            Kind::Rpd => &mut self.slot.rpd,
            Kind::Tpm => &mut self.slot.tpm,
            Kind::Tpd => &mut self.slot.tpd,
            Kind::ProviderDay if needed <= gauge.used => return now.day().end().ms_since(now).max(1),
            Kind::ProviderDay => return IN_FLIGHT_MS,
        };
        window.frees_in_ms(now, needed).unwrap_or(IN_FLIGHT_MS).max(1)
    }

    /// Counts a request or a call's tokens as made at `now`.
    pub(super) fn record(&mut self, now: Timestamp, kind: WindowKind, amount: u64) {
        match kind {
            WindowKind::Request => {
                self.slot.rpm.record(now, amount);
                self.slot.rpd.record(now, amount);
                self.key.day.record(now, amount);
            }
            WindowKind::Tokens => {
                self.slot.tpm.record(now, amount);
                self.slot.tpd.record(now, amount);
            }
        }
    }

    /// Counts what the table has into the windows of one span alone, which each have slots of their own.
    pub(super) fn restore(&mut self, at: Timestamp, span: Span, kind: WindowKind, amount: u64) {
        match (span, kind) {
            (Span::Minute, WindowKind::Request) => self.slot.rpm.record(at, amount),
            (Span::Minute, WindowKind::Tokens) => self.slot.tpm.record(at, amount),
            (Span::Day, WindowKind::Request) => self.slot.rpd.record(at, amount),
            (Span::Day, WindowKind::Tokens) => self.slot.tpd.record(at, amount),
        }
    }
}

impl Slot {
    fn new() -> Self {
        Self {
            limits: Limits::default(),
            rpm: Window::new(Span::Minute),
            rpd: Window::new(Span::Day),
            tpm: Window::new(Span::Minute),
            tpd: Window::new(Span::Day),
            leases: 0,
            open_requests: 0,
            open_tokens: 0,
            cooling: Cooling::default(),
            typical_output: TYPICAL_OUTPUT,
            stated: StatedLimits::default(),
        }
    }

    fn counts_something(&mut self, now: Timestamp) -> bool {
        self.rpd.used(now) > 0 || self.tpd.used(now) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(kind: Kind, used: u64, in_flight: u64, limit: u64, estimate: u64) -> bool {
        Gauge { kind, used, in_flight, limit: Some(limit) }.has_room(estimate)
    }

    #[test]
    fn requests_need_one_place_and_tokens_their_estimate() {
        assert!(room(Kind::Rpm, 3, 1, 5, 1_000) && !room(Kind::Rpm, 3, 2, 5, 0));
        assert!(room(Kind::Tpm, 30, 20, 100, 50) && !room(Kind::Tpm, 30, 20, 100, 51));
        assert!(Gauge { kind: Kind::Tpd, used: u64::MAX, in_flight: 1, limit: None }.has_room(u64::MAX));
    }

    #[test]
    fn an_estimate_over_the_limit_goes_into_an_empty_window_alone() {
        assert!(room(Kind::Tpm, 0, 0, 100, 5_000));
        assert!(!room(Kind::Tpm, 1, 0, 100, 5_000) && !room(Kind::Tpm, 0, 1, 100, 5_000));
        assert!(!room(Kind::Tpm, 0, 0, 0, 1) && !room(Kind::Rpm, 0, 0, 0, 1), "a limit of 0 lets nothing in");
    }

    #[test]
    fn what_counts_outlives_its_candidate_and_nothing_else_does() {
        let (mut book, now) = (Book::default(), Timestamp(1_000_000));
        let [counted, idle] = ["counted", "idle"].map(|model| CandidateId::new("p", model, "k"));
        book.entry_or_new(&counted, now).record(now, WindowKind::Request, 1);
        book.entry_or_new(&idle, now);
        book.retain(&HashSet::new(), now);
        assert!(book.entry(&counted).is_some() && book.entry(&idle).is_none());
        book.retain(&HashSet::new(), now.plus_ms(86_400_000));
        assert!(book.slots.is_empty() && book.keys.is_empty());
    }
}
