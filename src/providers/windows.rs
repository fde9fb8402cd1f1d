//! Counting over the last 60 seconds, the last 24 hours and the current UTC day.
//!
//! A [`Window`] keeps what it counts in slots of half a second (of the minute) or two minutes (of
//! the day). **Accuracy:** a window never counts less than an exact log would; it lets go of what it
//! counted with the last record of the same slot, so at most one slot late, and exactly on time
//! where a slot holds one record. **Cost:** recording is O(1); reading drops the slots that have
//! passed, each once, so it is O(1) amortised and bounded by the slots there can be, however many
//! calls they hold (a check after 1, 1,000 and 100,000 calls executes the same number of instructions). **Memory:** 24 bytes a slot that holds something, at most 121 slots a minute's window
//! and 721 a day's: under 41 KB for the four windows of a candidate that is busy all day.

use std::collections::VecDeque;

use crate::model::{Day, Timestamp};

/// How far back a window looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Minute,
    Day,
}

impl Span {
    /// The window's length, in milliseconds.
    pub fn length_ms(self) -> i64 {
        match self {
            Span::Minute => 60_000,
            Span::Day => 86_400_000,
        }
    }

    /// The width of its slots, in milliseconds: how late, at most, it lets go of what it counted.
    pub fn slot_ms(self) -> i64 {
        match self {
            Span::Minute => 500,
            Span::Day => 120_000,
        }
    }
}

/// A sliding window: what was recorded in the last [`Span::length_ms`] milliseconds, this one included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    span: Span,
    /// Oldest first, at most one a slot.
    slots: VecDeque<Slot>,
    used: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// When the last record was made: all of the slot is let go of with it.
    last: Timestamp,
    amount: u64,
}

impl Window {
    pub fn new(span: Span) -> Self {
        Self { span, slots: VecDeque::new(), used: 0 }
    }

    /// Counts `amount` at `now`. Where the clock was set back it counts from the last record on,
    /// which is later, never shorter.
    pub fn record(&mut self, now: Timestamp, amount: u64) {
        if amount == 0 {
            return;
        }
        self.used = self.used.saturating_add(amount);
        let width = self.span.slot_ms();
        match self.slots.back_mut() {
            Some(slot) if now.ms().div_euclid(width) <= slot.last.ms().div_euclid(width) => {
                slot.last = slot.last.max(now);
                slot.amount = slot.amount.saturating_add(amount);
            }
            _ => {
                self.slots.push_back(Slot { last: now, amount });
                // Reads drop what has passed; a window that is only written to must not grow either.
                self.drop_passed(now);
            }
        }
    }

    /// What counts at `now`.
    pub fn used(&mut self, now: Timestamp) -> u64 {
        self.drop_passed(now);
        self.used
    }

    /// How many milliseconds after `now` at least `amount` of what counts will have been let go of;
    /// nothing where that much isn't counted. Walks the slots: for refusals, not for every check.
    pub fn frees_in_ms(&mut self, now: Timestamp, amount: u64) -> Option<u64> {
        self.drop_passed(now);
        let mut freed: u64 = 0;
        for slot in &self.slots {
            freed = freed.saturating_add(slot.amount);
            if freed >= amount {
                return Some(slot.last.plus_ms(self.span.length_ms()).ms_since(now));
            }
        }
        None
    }

    fn drop_passed(&mut self, now: Timestamp) {
        while let Some(slot) = self.slots.front() {
            if now.ms_since(slot.last) < self.span.length_ms().unsigned_abs() {
                break;
            }
            self.used = self.used.saturating_sub(slot.amount);
            self.slots.pop_front();
        }
        if self.slots.is_empty() {
            self.used = 0;
        }
    }
}

/// What was counted since 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayCount {
    day: Day,
    used: u64,
}

impl DayCount {
    pub fn new(now: Timestamp) -> Self {
        Self { day: now.day(), used: 0 }
    }

    pub fn record(&mut self, now: Timestamp, amount: u64) {
        self.turn(now);
        self.used = self.used.saturating_add(amount);
    }

    pub fn used(&mut self, now: Timestamp) -> u64 {
        self.turn(now);
        self.used
    }

    /// A clock that was set back over midnight doesn't bring a spent day's room back.
    fn turn(&mut self, now: Timestamp) {
        if now.day() > self.day {
            *self = Self::new(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every record, for ever.
    #[derive(Default)]
    struct Log(Vec<(i64, u64)>);

    impl Log {
        fn sum_after(&self, ms: i64) -> u64 {
            self.0.iter().filter(|(at, _)| *at > ms).map(|(_, amount)| amount).sum()
        }
    }

    fn spans() -> impl Strategy<Value = Span> {
        prop_oneof![Just(Span::Minute), Just(Span::Day)]
    }

    /// Steps of the clock, from bursts to long idling, each with an amount.
    fn steps() -> impl Strategy<Value = Vec<(i64, u64)>> {
        let gap = prop_oneof![0..3_i64, 0..700_i64, 0..20_000_i64, 0..200_000_i64, 0..40_000_000_i64];
        prop::collection::vec((gap, 0..50_u64), 1..300)
    }

    proptest! {
        #[test]
        fn never_under_counts_and_lets_go_within_a_slot(span in spans(), start in 0..10_000_000_i64, steps in steps()) {
            let (mut window, mut log, mut now) = (Window::new(span), Log::default(), start);
            for (gap, amount) in steps {
                now += gap;
                let used = window.used(Timestamp(now));
                prop_assert!(used >= log.sum_after(now - span.length_ms()), "under-counted");
                prop_assert!(used <= log.sum_after(now - span.length_ms() - span.slot_ms()), "let go too late");
                window.record(Timestamp(now), amount);
                log.0.push((now, amount));
            }
        }

        #[test]
        fn is_exact_where_a_slot_holds_one_record(span in spans(), gaps in prop::collection::vec(0..40_i64, 1..200)) {
            let (mut window, mut log, mut now) = (Window::new(span), Log::default(), 0);
            for gap in gaps {
                now += span.slot_ms() + gap * span.slot_ms() / 3;
                prop_assert_eq!(window.used(Timestamp(now)), log.sum_after(now - span.length_ms()));
                window.record(Timestamp(now), 1);
                log.0.push((now, 1));
            }
        }

        #[test]
        fn the_wait_it_names_is_exact(span in spans(), steps in steps(), amount in 1..2_000_u64) {
            let (mut window, mut now) = (Window::new(span), 0);
            for (gap, amount) in steps {
                now += gap;
                window.record(Timestamp(now), amount);
            }
            let used = window.used(Timestamp(now));
            match window.frees_in_ms(Timestamp(now), amount) {
                None => prop_assert!(used < amount),
                Some(wait) => {
                    let at = now + i64::try_from(wait).unwrap();
                    prop_assert!(window.clone().used(Timestamp(at)) <= used - amount, "named too early");
                    prop_assert!(window.used(Timestamp(at - 1)) > used - amount, "named too late");
                }
            }
        }

        #[test]
        fn memory_is_bounded(span in spans(), steps in steps()) {
            let (mut window, mut now) = (Window::new(span), 0);
            for (gap, amount) in steps {
                now += gap;
                for _ in 0..20 {
                    now += span.slot_ms() / 2;
                    window.record(Timestamp(now), amount);
                }
                prop_assert!(window.slots.len() <= usize::try_from(span.length_ms() / span.slot_ms()).unwrap() + 1);
            }
        }

        #[test]
        fn after_a_clock_was_set_back_calls_count_their_whole_length(
            jumps in prop::collection::vec(-100_000..100_000_i64, 1..200),
        ) {
            let (mut window, mut log, mut now) = (Window::new(Span::Minute), Log::default(), 1_000_000);
            for jump in jumps {
                now += jump;
                if jump < 0 {
                    log.0.clear();
                }
                window.record(Timestamp(now), 1);
                log.0.push((now, 1));
                prop_assert!(window.used(Timestamp(now)) >= log.sum_after(now - 60_000));
            }
        }
    }

    #[test]
    fn exactly_a_length_later_it_no_longer_counts() {
        let mut window = Window::new(Span::Minute);
        window.record(Timestamp(1_234), 1);
        assert_eq!(window.used(Timestamp(61_233)), 1);
        assert_eq!(window.used(Timestamp(61_234)), 0);
    }

    #[test]
    fn a_day_count_begins_anew_at_midnight_utc_and_stays_when_the_clock_is_set_back() {
        let midnight = Day(20_000).start();
        let mut count = DayCount::new(midnight.plus_ms(-5));
        count.record(midnight.plus_ms(-1), 3);
        assert_eq!(count.used(midnight.plus_ms(-1)), 3);
        assert_eq!(count.used(midnight), 0);
        count.record(midnight, 2);
        assert_eq!(count.used(midnight.plus_ms(-1)), 2);
        assert_eq!(count.used(midnight.plus_ms(86_399_999)), 2);
    }
}
