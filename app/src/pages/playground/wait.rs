//! The wait that a refusal names, counted down.

use std::time::Duration;

use leptos::prelude::*;

/// Often enough that no second is skipped.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Clone, Copy)]
pub(crate) struct Wait {
    /// Milliseconds that are left; none where nothing is waited for, 0 when the wait is over.
    left_ms: RwSignal<Option<u64>>,
    handle: StoredValue<Option<IntervalHandle>>,
}

impl Wait {
    pub(crate) fn new() -> Self {
        let wait = Wait { left_ms: RwSignal::new(None), handle: StoredValue::new(None) };
        on_cleanup(move || wait.end());
        wait
    }

    pub(crate) fn begin(&self, seconds: u64) {
        self.end();
        let wait = *self;
        // Ends at a moment, not after ticks: a tab in the background ticks seldom.
        let end = now_ms().saturating_add(seconds.saturating_mul(1000));
        let look = move || {
            let left = end.saturating_sub(now_ms());
            wait.left_ms.set(Some(left));
            if left == 0 {
                wait.clear();
            }
        };
        look();
        self.handle.set_value(set_interval_with_handle(look, LOOK_EVERY).ok());
    }

    pub(crate) fn end(&self) {
        self.clear();
        let _ = self.left_ms.try_set(None);
    }

    pub(crate) fn left_ms(&self) -> Option<u64> {
        self.left_ms.get()
    }

    pub(crate) fn is_on(&self) -> bool {
        self.left_ms.with(|left| left.is_some_and(|left| left > 0))
    }

    pub(crate) fn is_on_untracked(&self) -> bool {
        untrack(|| self.is_on())
    }

    fn clear(&self) {
        if let Some(Some(handle)) = self.handle.try_update_value(Option::take) {
            handle.clear();
        }
    }
}

/// The browser's clock. Views never read it, so the server's rendering can't differ.
fn now_ms() -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "milliseconds since 1970 fit"
    )]
    let now = js_sys::Date::now() as u64;
    now
}
