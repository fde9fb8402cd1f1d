//! Requests that no candidate could serve: counted for the metric, and the last hour's for the page.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

use super::CallError;
use crate::model::Timestamp;
use crate::model::providers::{Unserved, UnservedRequest};

/// How far back the page looks.
const RECENT_MS: u64 = 3_600_000;
/// Times that are remembered; the page's count ends there.
const RECENT_MAX: usize = 10_000;
/// Names in the metric. They are configured ones, but over the years there could be many.
const NAMES_MAX: usize = 500;
const OTHER_NAMES: &str = "other";

/// Why a request was not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnservedReason {
    /// Every candidate is out of room or was told to be left alone.
    NoRoom,
    /// Every candidate that was asked failed.
    Failed,
    /// No key is enabled.
    NoKey,
}

impl UnservedReason {
    pub fn as_str(self) -> &'static str {
        match self {
            UnservedReason::NoRoom => "no_room",
            UnservedReason::Failed => "failed",
            UnservedReason::NoKey => "no_key",
        }
    }
}

#[derive(Default)]
pub(super) struct Unservable(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    totals: BTreeMap<(String, UnservedReason), u64>,
    recent: VecDeque<Timestamp>,
    last: Option<UnservedRequest>,
}

impl Unservable {
    /// `asked` is a name of the catalog.
    pub(super) fn count(&self, now: Timestamp, asked: &str, reason: UnservedReason, error: &CallError) {
        let counted = &mut *self.0.lock();
        let known = counted.totals.len() < NAMES_MAX || counted.totals.keys().any(|(name, _)| name == asked);
        let name = if known { asked } else { OTHER_NAMES };
        *counted.totals.entry((name.to_owned(), reason)).or_default() += 1;
        counted.recent.push_back(now);
        if counted.recent.len() > RECENT_MAX {
            counted.recent.pop_front();
        }
        let why = match error {
            CallError::NoRoom { message, .. } | CallError::AllFailed { message } => message.clone(),
            _ => String::new(),
        };
        counted.last = Some(UnservedRequest { at: now, asked: asked.to_owned(), why });
    }

    /// Since the process started, by name and reason.
    pub(super) fn totals(&self) -> Vec<(String, UnservedReason, u64)> {
        self.0.lock().totals.iter().map(|((name, reason), n)| (name.clone(), *reason, *n)).collect()
    }

    pub(super) fn recent(&self, now: Timestamp) -> Unserved {
        let counted = &mut *self.0.lock();
        while counted.recent.front().is_some_and(|at| now.ms_since(*at) >= RECENT_MS) {
            counted.recent.pop_front();
        }
        if counted.recent.is_empty() {
            return Unserved::default();
        }
        Unserved {
            count: u64::try_from(counted.recent.len()).unwrap_or(u64::MAX),
            last: counted.last.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_room() -> CallError {
        CallError::NoRoom { message: "no room".into(), retry_after_ms: 1 }
    }

    #[test]
    fn an_hour_later_the_page_is_silent_and_the_metric_is_not() {
        let (unservable, now) = (Unservable::default(), Timestamp(5_000_000));
        unservable.count(now, "small", UnservedReason::NoRoom, &no_room());
        let hour = i64::try_from(RECENT_MS).unwrap();
        assert_eq!(unservable.recent(now.plus_ms(hour - 1)).count, 1);
        assert_eq!(unservable.recent(now.plus_ms(hour)), Unserved::default());
        assert_eq!(unservable.totals(), [("small".to_owned(), UnservedReason::NoRoom, 1)]);
    }

    #[test]
    fn the_metrics_names_are_bounded() {
        let unservable = Unservable::default();
        for n in 0..NAMES_MAX + 50 {
            unservable.count(Timestamp(0), &format!("m{n}"), UnservedReason::Failed, &no_room());
        }
        let totals = unservable.totals();
        assert_eq!(totals.len(), NAMES_MAX + 1);
        assert!(totals.contains(&(OTHER_NAMES.to_owned(), UnservedReason::Failed, 50)));
    }
}
