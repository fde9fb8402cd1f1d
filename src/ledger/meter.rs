//! What one admitted request has used so far.

use std::sync::Arc;

use parking_lot::Mutex;

use super::WindowRow;
use crate::model::Usage;

/// What one model call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepUsage {
    /// All of it, whether reported or estimated.
    pub usage: Usage,
    /// The part of `usage` that the provider did not report.
    pub estimated: Usage,
}

impl StepUsage {
    pub fn reported(usage: Usage) -> Self {
        Self { usage, estimated: Usage::default() }
    }

    pub fn estimated(usage: Usage) -> Self {
        Self { usage, estimated: usage }
    }
}

impl std::ops::AddAssign for StepUsage {
    fn add_assign(&mut self, more: Self) {
        self.usage += more.usage;
        self.estimated += more.estimated;
    }
}

/// Collects the usage of a request's model calls, by upstream model. The pool adds to it at the
/// end of each call, so no route can forget to; clones share the same tally.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<Metered>>);

#[derive(Debug, Default)]
struct Metered {
    parts: Vec<(String, StepUsage)>,
    window_rows: Vec<WindowRow>,
}

impl Meter {
    /// Adds a call that has ended, however it ended, unless the provider failed it before its first piece.
    pub fn add(&self, model: &str, step: StepUsage) {
        let parts = &mut self.0.lock().parts;
        match parts.iter_mut().find(|(name, _)| name == model) {
            Some((_, sum)) => *sum += step,
            None => parts.push((model.to_owned(), step)),
        }
    }

    /// Takes what was collected, by model in the order of first use.
    pub fn take(&self) -> Vec<(String, StepUsage)> {
        std::mem::take(&mut self.0.lock().parts)
    }

    /// Adds what the request's calls count in the provider keys' windows, to be written with its usage.
    pub fn add_window_rows(&self, rows: impl IntoIterator<Item = WindowRow>) {
        self.0.lock().window_rows.extend(rows);
    }

    /// Takes the rows that were added.
    pub fn take_window_rows(&self) -> Vec<WindowRow> {
        std::mem::take(&mut self.0.lock().window_rows)
    }

    /// Whether no call has ended yet.
    pub fn is_empty(&self) -> bool {
        self.0.lock().parts.is_empty()
    }

    /// The sum so far.
    pub fn total(&self) -> Usage {
        self.0.lock().parts.iter().fold(Usage::default(), |mut sum, (_, step)| {
            sum += step.usage;
            sum
        })
    }
}
