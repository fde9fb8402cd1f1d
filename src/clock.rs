//! The only reader of the time; everything else is handed a [`Clock`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::model::Timestamp;

pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands until it is moved: for tests and for making a demo's history.
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn new(at: Timestamp) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(at.ms())))
    }

    pub fn set(&self, at: Timestamp) {
        self.0.store(at.ms(), Ordering::SeqCst);
    }

    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
