//! What a failure means for the candidate it came from, and how long it is left alone.
//!
//! Unlike causes are kept apart: a burst over the minute's tokens never benches a key for a day, and
//! a key that the provider rejects is not tried again until somebody changes it.

use super::Failure;
use crate::model::Timestamp;

/// What a 429 means that doesn't say for how long.
const RATE_LIMITED_MS: u64 = 60_000;
const MODEL_MISSING_MS: u64 = 600_000;
const OUT_OF_CREDIT_MS: u64 = 600_000;
/// The first step of the ladder for failures that pass by themselves, and its end.
const LADDER_FIRST_MS: u64 = 10_000;
const LADDER_LAST_MS: u64 = 300_000;
/// A provider that asks for less is left alone for this long all the same.
const STATED_AT_LEAST_MS: u64 = 1_000;
/// 9999-12-31T23:59:59.999Z, for what ends only when somebody does something.
pub const UNTIL_CHANGED: Timestamp = Timestamp(253_402_300_799_999);

/// Why a candidate is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// 429
    RateLimited,
    /// 402, or a 429 that says so.
    OutOfCredit,
    /// 5xx and other answers that say the provider is at fault.
    Status(u16),
    Timeout,
    Connection,
    Garbled,
    /// 401
    KeyRejected,
    /// 403
    Forbidden,
    /// 404
    ModelMissing,
    /// 404 and the like, to a call that not every provider has.
    NotOffered,
}

impl Reason {
    /// As the end of a sentence that begins with the candidate's name.
    pub fn sentence(self) -> String {
        match self {
            Reason::RateLimited => "is over a limit of the provider's own (429)".into(),
            Reason::OutOfCredit => "is out of credit".into(),
            Reason::Status(status) => format!("answered {status}"),
            Reason::Timeout => "did not answer in time".into(),
            Reason::Connection => "could not be reached".into(),
            Reason::Garbled => "answered with something that is no answer".into(),
            Reason::KeyRejected => "rejected the key (401)".into(),
            Reason::Forbidden => "does not allow the key to use the model (403)".into(),
            Reason::ModelMissing => "does not know the model (404)".into(),
            Reason::NotOffered => "does not offer this call".into(),
        }
    }
}

/// How long, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// As the provider asked.
    Stated(u64),
    Fixed(u64),
    /// Longer with every failure since the last success.
    Ladder,
    UntilChanged,
}

/// What a failure leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consequence {
    pub reason: Reason,
    /// Whether the provider answered with something other than a 429: then it counted a request, and so do we.
    pub counts: bool,
    /// Whether it holds for the key with every model.
    pub whole_key: bool,
    /// None where the fault may be the request's: the next candidate is tried, this one stays in use.
    length: Option<Length>,
}

impl Consequence {
    /// Whether the provider doesn't have the call at all.
    pub fn not_offered(&self) -> bool {
        self.reason == Reason::NotOffered
    }

    /// Whether the provider itself said how long it wants to be left alone after a 429: that is
    /// want of room rather than failure.
    pub fn is_want_of_room(&self) -> bool {
        matches!(
            (self.reason, self.length),
            (Reason::RateLimited | Reason::OutOfCredit, Some(Length::Stated(_)))
        )
    }
}

/// Classifies a failure.
pub fn consequence(failure: &Failure) -> Consequence {
    let ladder =
        |reason, counts| Consequence { reason, counts, whole_key: false, length: Some(Length::Ladder) };
    let (status, retry_after_ms, reset_ms, code) = match failure {
        Failure::Status { status, retry_after_ms, reset_ms, code, .. } => {
            (*status, *retry_after_ms, *reset_ms, code)
        }
        Failure::Timeout => return ladder(Reason::Timeout, false),
        Failure::Connection => return ladder(Reason::Connection, false),
        Failure::Garbled(_) => return ladder(Reason::Garbled, true),
        // It has other calls to answer.
        Failure::NotOffered => {
            return Consequence { reason: Reason::NotOffered, counts: true, whole_key: false, length: None };
        }
    };
    let stated = |ms: u64| Length::Stated(ms.max(STATED_AT_LEAST_MS));
    let answered = |reason, length| Consequence { reason, counts: true, whole_key: false, length };
    match status {
        429 => Consequence {
            reason: if code.as_deref().is_some_and(|c| c.contains("insufficient_quota")) {
                Reason::OutOfCredit
            } else {
                Reason::RateLimited
            },
            counts: false,
            whole_key: false,
            length: Some(retry_after_ms.or(reset_ms).map_or(Length::Fixed(RATE_LIMITED_MS), stated)),
        },
        401 => Consequence { whole_key: true, ..answered(Reason::KeyRejected, Some(Length::UntilChanged)) },
        402 => Consequence {
            whole_key: true,
            ..answered(Reason::OutOfCredit, Some(Length::Fixed(OUT_OF_CREDIT_MS)))
        },
        403 => answered(Reason::Forbidden, Some(Length::UntilChanged)),
        404 => answered(Reason::ModelMissing, Some(Length::Fixed(MODEL_MISSING_MS))),
        408 => answered(Reason::Timeout, Some(Length::Ladder)),
        500.. => answered(Reason::Status(status), Some(retry_after_ms.map_or(Length::Ladder, stated))),
        _ => answered(Reason::Status(status), None),
    }
}

/// A time of being left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cooldown {
    pub until: Timestamp,
    /// Whether the provider said how long. Only then does it bench the last candidate of an alias.
    pub stated: bool,
    pub reason: Reason,
}

/// The cooldown of one candidate, or of a key with all its models.
#[derive(Debug, Clone, Default)]
pub struct Cooling {
    current: Option<Cooldown>,
    /// Steps of the ladder taken since the last success.
    steps: u32,
    /// Grows with every failure, so that calls in flight together climb one step together.
    generation: u64,
}

impl Cooling {
    /// The cooldown in force.
    pub fn at(&self, now: Timestamp) -> Option<Cooldown> {
        self.current.filter(|cooldown| cooldown.until > now)
    }

    /// What a call that begins now hands to [`Cooling::fail`].
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Enters a failure of a call that began at `generation`. A running cooldown is never shortened.
    pub fn fail(&mut self, now: Timestamp, consequence: &Consequence, generation: u64) {
        let Some(length) = consequence.length else { return };
        let until = match length {
            Length::Stated(ms) | Length::Fixed(ms) => after(now, ms),
            Length::UntilChanged => UNTIL_CHANGED,
            Length::Ladder => {
                if generation == self.generation || self.steps == 0 {
                    self.steps = self.steps.saturating_add(1);
                }
                let doubled = LADDER_FIRST_MS.saturating_mul(1 << (self.steps - 1).min(16));
                after(now, doubled.min(LADDER_LAST_MS))
            }
        };
        self.generation += 1;
        if self.at(now).is_none_or(|running| until >= running.until) {
            let stated = matches!(length, Length::Stated(_));
            self.current = Some(Cooldown { until, stated, reason: consequence.reason });
        }
    }

    /// A success shows that what we assumed is over; what the provider asked for stays.
    pub fn succeed(&mut self) {
        self.steps = 0;
        if self.current.is_some_and(|cooldown| !cooldown.stated) {
            self.current = None;
        }
    }

    /// Ends the cooldown, whoever asked for it. False where there was none at `now`.
    pub fn clear(&mut self, now: Timestamp) -> bool {
        let was = self.at(now).is_some();
        (self.current, self.steps) = (None, 0);
        was
    }
}

fn after(now: Timestamp, ms: u64) -> Timestamp {
    now.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX)).min(UNTIL_CHANGED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn status(status: u16) -> Failure {
        Failure::Status {
            status,
            retry_after_ms: None,
            reset_ms: None,
            message: None,
            code: None,
            param: None,
        }
    }

    fn rate_limited(retry_after_ms: Option<u64>, reset_ms: Option<u64>) -> Failure {
        Failure::Status { status: 429, retry_after_ms, reset_ms, message: None, code: None, param: None }
    }

    /// How long one failure benches, and whether that counts as stated.
    fn benched(failure: &Failure) -> Option<(u64, bool)> {
        let mut cooling = Cooling::default();
        cooling.fail(NOW, &consequence(failure), 0);
        cooling.at(NOW).map(|cooldown| (cooldown.until.ms_since(NOW), cooldown.stated))
    }

    #[test]
    fn a_429_lasts_as_the_provider_says_else_a_minute() {
        assert_eq!(benched(&rate_limited(Some(3_000), Some(9_000))), Some((3_000, true)));
        assert_eq!(benched(&rate_limited(None, Some(9_000))), Some((9_000, true)));
        assert_eq!(benched(&rate_limited(None, None)), Some((60_000, false)));
        assert_eq!(
            benched(&rate_limited(Some(0), None)),
            Some((1_000, true)),
            "0 would be no cooldown at all"
        );
        assert!(!consequence(&rate_limited(None, None)).counts);
        assert!(consequence(&status(500)).counts && !consequence(&Failure::Timeout).counts);
    }

    #[test]
    fn each_cause_has_its_own_length() {
        assert_eq!(benched(&status(404)), Some((600_000, false)));
        assert_eq!(benched(&status(503)), Some((10_000, false)));
        assert_eq!(benched(&Failure::Connection), Some((10_000, false)));
        let (ms, stated) = benched(&status(401)).unwrap();
        assert!(ms > 365 * 86_400_000 && !stated);
        assert!(consequence(&status(401)).whole_key && !consequence(&status(404)).whole_key);
        for fault_of_the_request in [400, 413, 422] {
            assert_eq!(benched(&status(fault_of_the_request)), None);
        }
        let busy = Failure::Status {
            status: 503,
            retry_after_ms: Some(7_000),
            reset_ms: None,
            message: None,
            code: None,
            param: None,
        };
        assert_eq!(benched(&busy), Some((7_000, true)));
        assert!(
            !consequence(&busy).is_want_of_room()
                && consequence(&rate_limited(Some(1), None)).is_want_of_room()
        );
    }

    #[test]
    fn the_ladder_doubles_to_five_minutes_and_a_success_forgets_it() {
        let (mut cooling, mut now, mut lengths) = (Cooling::default(), NOW, Vec::new());
        for _ in 0..7 {
            cooling.fail(now, &consequence(&Failure::Timeout), cooling.generation());
            let until = cooling.at(now).unwrap().until;
            lengths.push(until.ms_since(now) / 1000);
            now = until;
            assert_eq!(cooling.at(now), None);
        }
        assert_eq!(lengths, [10, 20, 40, 80, 160, 300, 300]);
        cooling.succeed();
        cooling.fail(now, &consequence(&status(500)), cooling.generation());
        assert_eq!(cooling.at(now).unwrap().until.ms_since(now), 10_000);
        cooling.succeed();
        assert_eq!(cooling.at(now), None);
    }

    #[test]
    fn calls_that_were_in_flight_together_climb_one_step() {
        let mut cooling = Cooling::default();
        let began = cooling.generation();
        for _ in 0..20 {
            cooling.fail(NOW, &consequence(&status(500)), began);
        }
        assert_eq!(cooling.at(NOW).unwrap().until.ms_since(NOW), 10_000);
    }

    #[test]
    fn what_the_provider_asked_for_outlasts_success_and_shorter_cooldowns() {
        let mut cooling = Cooling::default();
        cooling.fail(NOW, &consequence(&rate_limited(Some(90_000), None)), 0);
        cooling.succeed();
        cooling.fail(NOW, &consequence(&status(500)), 1);
        assert_eq!(cooling.at(NOW).unwrap().until.ms_since(NOW), 90_000);
        assert!(cooling.clear(NOW));
        assert!(cooling.at(NOW).is_none() && !cooling.clear(NOW));
    }
}
