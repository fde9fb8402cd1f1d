//! What one upstream (a provider's endpoint, or the demo model) answers to one call.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use parking_lot::Mutex;
use serde_json::Value;

use super::Events;
use super::estimate::TextMeter;
use super::headers::LimitHeaders;
use crate::ledger::StepUsage;
use crate::model::Usage;

pub struct UpstreamAnswer {
    /// What the provider says about its own limits.
    pub limits: LimitHeaders,
    /// Its `x-request-id`.
    pub request_id: Option<HeaderValue>,
    pub body: UpstreamBody,
}

pub enum UpstreamBody {
    Whole {
        completion: Value,
        /// What `completion` was read from.
        text: Bytes,
        step: StepUsage,
    },
    /// A stream that has begun. The tally knows what it used so far, also after it was dropped.
    Stream(Events, Tally),
}

/// The usage of a call while it runs: what the provider reported, and an estimate of what it
/// didn't. Clones share the count.
#[derive(Debug, Clone)]
pub struct Tally(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    input_estimate: u64,
    output: TextMeter,
    report: Report,
}

/// A provider's report: each side is there or missing, and a 0 is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
}

impl Tally {
    pub(super) fn new(input_estimate: u64) -> Self {
        let counted = Counted { input_estimate, output: TextMeter::default(), report: Report::default() };
        Self(Arc::new(Mutex::new(counted)))
    }

    /// The usage if the call ended now.
    pub fn step(&self) -> StepUsage {
        let counted = self.0.lock();
        let side = |reported: Option<u64>, estimate: u64| match reported {
            Some(tokens) => (tokens, 0),
            None => (estimate, estimate),
        };
        let (input_tokens, input_guess) = side(counted.report.input, counted.input_estimate);
        let (output_tokens, output_guess) = side(counted.report.output, counted.output.tokens());
        StepUsage {
            usage: Usage { input_tokens, output_tokens },
            estimated: Usage { input_tokens: input_guess, output_tokens: output_guess },
        }
    }

    /// Counts output.
    pub(super) fn say(&self, text: &str) {
        self.0.lock().output.add(text);
    }

    /// Takes a report; what it names replaces what was reported before.
    pub(super) fn report(&self, report: Report) {
        let known = &mut self.0.lock().report;
        known.input = report.input.or(known.input);
        known.output = report.output.or(known.output);
    }
}
