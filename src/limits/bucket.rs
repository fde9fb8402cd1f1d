//! The rate's bucket: pure integer arithmetic, exact to the millisecond.
//!
//! A bucket holds what was spent, so a changed limit applies with history kept. One request is
//! [`UNIT`] units; a limit of `n` requests a minute drains `n` units a millisecond, which makes every
//! step a whole number. It drains at the limit in force when it is looked at.

use crate::model::{RateState, Timestamp};

/// One request. 60,000 milliseconds a minute, so a limit of `n` a minute is `n` units a millisecond.
const UNIT: u64 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bucket {
    /// Units spent and not yet drained, at `at`.
    spent: u64,
    at: Timestamp,
}

impl Bucket {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { spent: 0, at: now }
    }

    /// A bucket that holds so much at `now`.
    pub(super) fn holding(spent: u64, now: Timestamp) -> Self {
        Self { spent, at: now }
    }

    /// Drains up to `now`. A clock that was set back drains nothing and is believed from here on:
    /// otherwise the bucket would stand still until the old time comes round again.
    pub(super) fn drain(&mut self, limit: u64, now: Timestamp) {
        self.spent = self.spent.saturating_sub(limit.saturating_mul(now.ms_since(self.at)));
        self.at = now;
    }

    /// Whether one more request fits; else exactly how many milliseconds until it does.
    /// The bucket has been drained up to now.
    pub(super) fn check(&self, limit: u64) -> Result<(), u64> {
        let over = (self.spent + UNIT).saturating_sub(limit.saturating_mul(UNIT));
        if over == 0 { Ok(()) } else { Err(over.div_ceil(limit.max(1))) }
    }

    pub(super) fn spend_one(&mut self) {
        self.spent = self.spent.saturating_add(UNIT);
    }

    pub(super) fn add(&mut self, units: u64) {
        self.spent = self.spent.saturating_add(units);
    }

    pub(super) fn give_back_one(&mut self) {
        self.spent = self.spent.saturating_sub(UNIT);
    }

    /// What headers and pages tell of a drained bucket.
    pub(super) fn state(&self, limit: u64) -> RateState {
        RateState {
            limit,
            remaining: limit.saturating_mul(UNIT).saturating_sub(self.spent) / UNIT,
            full_in_ms: self.spent.div_ceil(limit.max(1)),
        }
    }

    /// Whether nothing is left to remember at `now`.
    pub(super) fn is_idle(&self, limit: u64, now: Timestamp) -> bool {
        self.spent <= limit.saturating_mul(now.ms_since(self.at))
    }

    pub(super) fn spent_units(&self) -> u64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bucket_after(n: u64, at: Timestamp) -> Bucket {
        let mut bucket = Bucket::new(at);
        (0..n).for_each(|_| bucket.spend_one());
        bucket
    }

    #[test]
    fn a_burst_of_one_minute_then_the_sustained_rate() {
        let start = Timestamp(1_000_000);
        let mut bucket = bucket_after(20, start);
        assert_eq!(bucket.check(20), Err(3_000));
        bucket.drain(20, start.plus_ms(2_999));
        assert_eq!(bucket.check(20), Err(1));
        bucket.drain(20, start.plus_ms(3_000));
        assert_eq!(bucket.check(20), Ok(()));
    }

    #[test]
    fn raising_the_limit_keeps_what_was_spent() {
        let mut bucket = bucket_after(20, Timestamp(0));
        let mut admitted = 0;
        while bucket.check(60).is_ok() {
            bucket.spend_one();
            admitted += 1;
        }
        assert_eq!(admitted, 40);
        assert_eq!(bucket.state(60).remaining, 0);
        assert_eq!(bucket.state(60).full_in_ms, 60_000);
    }

    #[test]
    fn lowering_it_applies_at_once() {
        let bucket = bucket_after(10, Timestamp(0));
        assert_eq!(bucket.check(4), Err(105_000));
    }

    /// The same rule in fractions of a request, kept as exact rationals over one denominator.
    struct Model {
        /// Spent, in sixty-thousandths of a request.
        spent: i128,
        at: i64,
    }

    #[derive(Debug, Clone)]
    enum Step {
        Request,
        Clock(i64),
        Limit(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Request),
            3 => (0_i64..20_000).prop_map(Step::Clock),
            1 => (-100_000_i64..0).prop_map(Step::Clock),
            1 => prop_oneof![1_u64..100, Just(2_147_483_647)].prop_map(Step::Limit),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn agrees_with_a_simple_model_and_names_exact_waits(steps in steps(), first in 1_u64..60) {
            let mut now = 10_000_000_i64;
            let mut limit = first;
            let mut bucket = Bucket::new(Timestamp(now));
            let mut model = Model { spent: 0, at: now };
            for step in steps {
                match step {
                    Step::Clock(ms) => now += ms,
                    Step::Limit(n) => limit = n,
                    Step::Request => {
                        let drained = i128::from(limit) * i128::from((now - model.at).max(0));
                        model.spent = (model.spent - drained).max(0);
                        model.at = now;
                        let fits = model.spent + 60_000 <= i128::from(limit) * 60_000;

                        bucket.drain(limit, Timestamp(now));
                        let verdict = bucket.check(limit);
                        prop_assert_eq!(verdict.is_ok(), fits);
                        match verdict {
                            Ok(()) => {
                                bucket.spend_one();
                                model.spent += 60_000;
                            }
                            Err(wait) => {
                                let later = |ms: u64| {
                                    let mut later = bucket;
                                    later.drain(limit, Timestamp(now + i64::try_from(ms).unwrap()));
                                    later.check(limit)
                                };
                                prop_assert!(later(wait - 1).is_err());
                                prop_assert!(later(wait).is_ok());
                            }
                        }
                        prop_assert_eq!(i128::from(bucket.spent_units()), model.spent);
                    }
                }
            }
        }
    }
}
