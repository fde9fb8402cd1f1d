//! How a call ends that no candidate served: which error, and the sentence for the caller.

use super::book::Obstacle;
use super::catalog::Candidate;
use super::cooldown::Consequence;
use super::{CallError, Operation};
use crate::model::fmt::thousands;
use crate::model::{Rejection, Timestamp};

/// Candidates named in one sentence.
const NAMED: usize = 5;
/// What nobody knows the end of is worth another try after this long.
const UNKNOWN_MS: u64 = 1_000;
const NO_KEY_MS: u64 = 60_000;
/// Nobody is sent away for longer.
const LONGEST_MS: u64 = 86_400_000;

/// Every candidate that was asked failed.
pub(super) fn all_failed<'c>(failures: impl Iterator<Item = (&'c Candidate, Consequence)>) -> CallError {
    let said = failures
        .map(|(candidate, consequence)| format!("{} {}", name(candidate), consequence.reason.sentence()));
    CallError::AllFailed {
        message: format!("every model provider that was asked failed: {}; try again", listed(said)),
    }
}

/// Every candidate is out of room or was told to be left alone.
pub(super) fn no_room<'c>(
    obstacles: impl Iterator<Item = (&'c Candidate, Obstacle)>,
    now: Timestamp,
) -> CallError {
    let mut soonest = LONGEST_MS;
    let mut said = Vec::new();
    for (candidate, obstacle) in obstacles {
        let (why, wait_ms) = match obstacle {
            Obstacle::Full { gauges, frees_in_ms } => {
                let full = gauges.iter().map(|gauge| {
                    let taken = gauge.used.saturating_add(gauge.in_flight);
                    let limit = gauge.limit.unwrap_or_default();
                    format!("{} of {} {}", thousands(taken), thousands(limit), gauge.kind.name())
                });
                (format!("has {} used or in flight", full.collect::<Vec<_>>().join(" and ")), frees_in_ms)
            }
            Obstacle::Cooling(cooldown) => (cooldown.reason.sentence(), cooldown.until.ms_since(now)),
            Obstacle::Gone => ("has changed just now".to_owned(), UNKNOWN_MS),
        };
        soonest = soonest.min(wait_ms.max(1));
        said.push(format!("{} {why}", name(candidate)));
    }
    let wait_s = soonest.div_ceil(1000);
    let at = now.plus_ms(i64::try_from(soonest).unwrap_or(i64::MAX)).rfc3339();
    CallError::NoRoom {
        message: format!(
            "no model provider has room: {}; retry after {}s (at {at})",
            listed(said.into_iter()),
            thousands(wait_s)
        ),
        retry_after_ms: soonest,
    }
}

/// Every candidate said that it doesn't have the call.
pub(super) fn not_offered(asked: &str, operation: Operation) -> CallError {
    CallError::NotOffered { asked: asked.to_owned(), path: operation.path() }
}

/// The model is there, but no key to ask for it with.
pub(super) fn no_key(asked: &str) -> CallError {
    CallError::NoRoom {
        message: format!(
            "no provider key for the model \"{asked}\" is enabled; an admin can add or enable one"
        ),
        retry_after_ms: NO_KEY_MS,
    }
}

/// The provider's 400, in its own words.
pub(super) fn rejected(message: Option<String>, code: Option<String>, param: Option<String>) -> CallError {
    CallError::Rejected(Rejection {
        message: match message.filter(|words| !words.trim().is_empty()) {
            Some(words) => format!("the model provider does not accept the request: {words}"),
            None => {
                "the model provider does not accept the request; check its messages and parameters".into()
            }
        },
        // Types and statuses that stand in for a missing code are none.
        code: code.filter(|code| !code.ends_with("_error") && code.bytes().any(|b| b.is_ascii_lowercase())),
        param,
    })
}

/// Keys are not named: whose they are is not the caller's business.
fn name(candidate: &Candidate) -> String {
    format!("{}/{}", candidate.id.platform, candidate.id.model)
}

/// Each once, as several keys of a platform often have the same to say.
fn listed(said: impl Iterator<Item = String>) -> String {
    let mut each: Vec<String> = Vec::new();
    for words in said {
        if !each.contains(&words) {
            each.push(words);
        }
    }
    let more = each.len().saturating_sub(NAMED);
    each.truncate(NAMED);
    if more > 0 {
        each.push(format!("{more} more likewise"));
    }
    each.join("; ")
}
