//! The outcome of admission, and everything that is said about it.
//!
//! The sentence, the headers, both JSON shapes and the page's countdown are rendered from
//! [`LimitState`] and [`Refusal`] and from nothing else.

use serde::{Deserialize, Serialize};

use super::Timestamp;
use super::fmt::thousands;

/// The rate's window, in seconds.
pub const RATE_WINDOW_S: u64 = 60;
/// The budget's window, in seconds.
pub const BUDGET_WINDOW_S: u64 = 86_400;
/// When a budget is held by calls in flight alone, ask again after this long: most calls end within it.
pub const IN_FLIGHT_RETRY_MS: u64 = 5_000;

/// Nobody should wait longer than this to repeat a request, in seconds.
pub const WORTH_WAITING_S: u64 = 60;

/// A rate as it stands after a decision. A disabled rate has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateState {
    /// Requests a minute.
    pub limit: u64,
    /// Whole requests that are left at once.
    pub remaining: u64,
    /// Milliseconds until the whole allowance is back.
    pub full_in_ms: u64,
}

/// A budget as it stands by what is recorded so far. A disabled budget has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetState {
    /// Tokens a day.
    pub limit: u64,
    /// Tokens recorded today.
    pub used: u64,
    /// 00:00 UTC, when the next day's budget begins.
    pub resets_at: Timestamp,
}

impl BudgetState {
    pub fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// Both limits at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitState {
    pub now: Timestamp,
    pub rate: Option<RateState>,
    pub budget: Option<BudgetState>,
}

impl LimitState {
    /// The value of `RateLimit-Policy`, absent when both limits are disabled.
    pub fn policy_header(&self) -> Option<String> {
        let rate = self.rate.map(|r| format!("\"rate\";q={};w={RATE_WINDOW_S}", r.limit));
        let budget =
            self.budget.map(|b| format!("\"budget\";q={};w={BUDGET_WINDOW_S};qu=\"tokens\"", b.limit));
        joined(rate, budget)
    }

    /// The value of `RateLimit`, absent when both limits are disabled.
    pub fn state_header(&self) -> Option<String> {
        let rate = self.rate.map(|r| format!("\"rate\";r={};t={}", r.remaining, whole_seconds(r.full_in_ms)));
        let budget = self.budget.map(|b| {
            format!("\"budget\";r={};t={}", b.remaining(), whole_seconds(b.resets_at.ms_since(self.now)))
        });
        joined(rate, budget)
    }
}

impl LimitState {
    /// What OpenAI's clients look for: the rate as requests, the budget as tokens.
    pub fn openai_headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if let Some(rate) = self.rate {
            headers.push(("x-ratelimit-limit-requests", rate.limit.to_string()));
            headers.push(("x-ratelimit-remaining-requests", rate.remaining.to_string()));
            headers.push(("x-ratelimit-reset-requests", go_duration(rate.full_in_ms)));
        }
        if let Some(budget) = self.budget {
            headers.push(("x-ratelimit-limit-tokens", budget.limit.to_string()));
            headers.push(("x-ratelimit-remaining-tokens", budget.remaining().to_string()));
            headers.push(("x-ratelimit-reset-tokens", go_duration(budget.resets_at.ms_since(self.now))));
        }
        headers
    }
}

/// A span as Go prints it, which is how OpenAI writes its resets: `6m0s`, `1.5s`, `200ms`.
fn go_duration(ms: u64) -> String {
    if (1..1000).contains(&ms) {
        return format!("{ms}ms");
    }
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let larger = match (hours, minutes) {
        (0, 0) => String::new(),
        (0, minutes) => format!("{minutes}m"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    };
    let fraction = match ms % 1000 {
        0 => String::new(),
        rest => format!(".{rest:03}").trim_end_matches('0').to_owned(),
    };
    format!("{larger}{seconds}{fraction}s")
}

fn joined(rate: Option<String>, budget: Option<String>) -> Option<String> {
    match (rate, budget) {
        (Some(rate), Some(budget)) => Some(format!("{rate}, {budget}")),
        (one, other) => one.or(other),
    }
}

fn whole_seconds(ms: u64) -> u64 {
    ms.div_ceil(1000)
}

/// Why a model request was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: Reason,
    pub state: LimitState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    Rate(RateRefusal),
    Budget(BudgetRefusal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateRefusal {
    /// Requests a minute.
    pub limit: u64,
    /// Exactly how long until one request fits: one millisecond earlier it would be refused.
    pub wait_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRefusal {
    pub used: u64,
    pub limit: u64,
    /// Tokens that calls in flight hold, where only they stand in the way (reserve mode).
    pub reserved: Option<u64>,
    pub resets_at: Timestamp,
}

impl Refusal {
    /// When a retry can succeed.
    pub fn retry_at(&self) -> Timestamp {
        let now = self.state.now;
        match self.reason {
            Reason::Rate(rate) => now.plus_ms(i64::try_from(rate.wait_ms).unwrap_or(i64::MAX)),
            Reason::Budget(BudgetRefusal { reserved: Some(_), .. }) => {
                now.plus_ms(i64::try_from(IN_FLIGHT_RETRY_MS).unwrap_or(i64::MAX))
            }
            Reason::Budget(budget) => budget.resets_at,
        }
    }

    /// The value of `Retry-After`: whole seconds, rounded up, at least 1.
    pub fn retry_after_s(&self) -> u64 {
        whole_seconds(self.retry_at().ms_since(self.state.now)).max(1)
    }

    /// Whether waiting a minute helps. Where it doesn't, and with a spent budget in any case, SDKs are
    /// told not to repeat the request (`x-should-retry: false`).
    pub fn worth_retrying(&self) -> bool {
        let spent = matches!(self.reason, Reason::Budget(BudgetRefusal { reserved: None, .. }));
        !spent && self.retry_after_s() <= WORTH_WAITING_S
    }

    /// `rate` or `budget`: the limit's name in metrics, in the ledger and in the headers.
    pub fn limit_name(&self) -> &'static str {
        match self.reason {
            Reason::Rate(_) => "rate",
            Reason::Budget(_) => "budget",
        }
    }

    /// The `code` of OpenAI's error shape.
    pub fn openai_code(&self) -> &'static str {
        match self.reason {
            Reason::Rate(_) => "rate_limit_exceeded",
            Reason::Budget(_) if self.worth_retrying() => "rate_limit_exceeded",
            Reason::Budget(_) => "insufficient_quota",
        }
    }

    /// The `type` of OpenAI's error shape.
    pub fn openai_type(&self) -> &'static str {
        match self.reason {
            Reason::Rate(_) => "requests",
            Reason::Budget(_) if self.worth_retrying() => "tokens",
            Reason::Budget(_) => "insufficient_quota",
        }
    }

    pub fn sentence(&self) -> String {
        let retry = || format!("retry after {}s (at {})", self.retry_after_s(), self.retry_at());
        match self.reason {
            Reason::Rate(RateRefusal { limit, .. }) => {
                let requests = if limit == 1 { "request" } else { "requests" };
                format!(
                    "rate limit reached: {} model {requests} per minute per user in this workspace; {}",
                    thousands(limit),
                    retry()
                )
            }
            Reason::Budget(BudgetRefusal { used, limit, reserved, resets_at }) => {
                let of = format!("{} of {} tokens used", thousands(used), thousands(limit));
                match reserved {
                    Some(held) => format!(
                        "daily token budget reached: {of} and {} reserved by calls in flight in this workspace today; {}",
                        thousands(held),
                        retry()
                    ),
                    None => format!(
                        "daily token budget reached: {of} in this workspace today; resets at {resets_at}"
                    ),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    fn refusal(reason: Reason) -> Refusal {
        let state = LimitState { now: at("2026-09-20T10:00:00Z"), rate: None, budget: None };
        Refusal { reason, state }
    }

    #[test]
    fn the_rates_sentence_is_the_contracts() {
        let r = refusal(Reason::Rate(RateRefusal { limit: 20, wait_ms: 3_000 }));
        assert_eq!(
            r.sentence(),
            "rate limit reached: 20 model requests per minute per user in this workspace; \
             retry after 3s (at 2026-09-20T10:00:03.000Z)"
        );
        assert_eq!(
            (r.retry_after_s(), r.worth_retrying(), r.openai_code()),
            (3, true, "rate_limit_exceeded")
        );
        let one = refusal(Reason::Rate(RateRefusal { limit: 1, wait_ms: 1 }));
        assert!(one.sentence().starts_with("rate limit reached: 1 model request per minute per user"));
        assert_eq!(one.retry_after_s(), 1);
        // The limit was lowered long after more had been spent.
        let long = refusal(Reason::Rate(RateRefusal { limit: 1, wait_ms: 60_001 }));
        assert_eq!((long.retry_after_s(), long.worth_retrying()), (61, false));
    }

    #[test]
    fn the_budgets_sentence_is_the_contracts() {
        let spent = BudgetRefusal {
            used: 2_000_140,
            limit: 2_000_000,
            reserved: None,
            resets_at: at("2026-09-21T00:00:00Z"),
        };
        let r = refusal(Reason::Budget(spent));
        assert_eq!(
            r.sentence(),
            "daily token budget reached: 2,000,140 of 2,000,000 tokens used in this workspace today; \
             resets at 2026-09-21T00:00:00.000Z"
        );
        assert_eq!((r.retry_after_s(), r.worth_retrying()), (14 * 3600, false));
        assert_eq!(r.openai_code(), "insufficient_quota");

        let held = BudgetRefusal { used: 1_900, limit: 2_000, reserved: Some(300), ..spent };
        let r = refusal(Reason::Budget(held));
        assert_eq!(
            r.sentence(),
            "daily token budget reached: 1,900 of 2,000 tokens used and 300 reserved by calls in flight \
             in this workspace today; retry after 5s (at 2026-09-20T10:00:05.000Z)"
        );
        assert!(r.worth_retrying());
    }

    #[test]
    fn headers_leave_a_disabled_limit_out() {
        let now = at("2026-09-20T14:10:00Z");
        let rate = Some(RateState { limit: 20, remaining: 7, full_in_ms: 38_001 });
        let budget = Some(BudgetState { limit: 2_000_000, used: 1_000, resets_at: now.day().end() });
        let both = LimitState { now, rate, budget };
        assert_eq!(
            both.policy_header().unwrap(),
            "\"rate\";q=20;w=60, \"budget\";q=2000000;w=86400;qu=\"tokens\""
        );
        assert_eq!(both.state_header().unwrap(), "\"rate\";r=7;t=39, \"budget\";r=1999000;t=35400");
        let one = LimitState { rate: None, ..both };
        assert_eq!(one.state_header().unwrap(), "\"budget\";r=1999000;t=35400");
        assert_eq!(LimitState { budget: None, ..one }.policy_header(), None);
        let openai: Vec<String> =
            both.openai_headers().into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            openai,
            [
                "x-ratelimit-limit-requests: 20",
                "x-ratelimit-remaining-requests: 7",
                "x-ratelimit-reset-requests: 38.001s",
                "x-ratelimit-limit-tokens: 2000000",
                "x-ratelimit-remaining-tokens: 1999000",
                "x-ratelimit-reset-tokens: 9h50m0s",
            ]
        );
        assert_eq!(one.openai_headers().len(), 3);
    }

    #[test]
    fn spans_are_written_as_go_does() {
        for (ms, text) in [
            (0, "0s"),
            (1, "1ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (1_500, "1.5s"),
            (360_000, "6m0s"),
            (3_600_000, "1h0m0s"),
        ] {
            assert_eq!(go_duration(ms), text);
        }
    }
}
