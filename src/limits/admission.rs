//! Leave to call models: what admission gives, and what every call of a model asks to see.

use crate::ledger::Meter;

/// Proof that a request passed both limits. The pool takes it as an argument, so a route that
/// calls a model without having asked does not compile.
pub struct Admission {
    meter: Meter,
}

impl Admission {
    /// Where the request's model calls enter what they used.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// An admission of no limiter, for tests of what comes after it.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            meter: Meter::default(),
        }
    }
}
