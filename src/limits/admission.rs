//! Leave to call models: what admission gives, and what every call of a model asks to see.

use std::fmt;

use parking_lot::Mutex;

use super::limiter::Limiter;
use super::store::{Release, ReservationId};
use crate::ledger::{Meter, Settlement};
use crate::model::{Error, LimitState, Route, UserId, WorkspaceId};

/// Proof that a request passed both limits. The pool takes it as an argument, so a route that
/// calls a model without having asked does not compile.
///
/// It ends in [`Admission::settle`] or [`Admission::give_back`]. Dropped before (a task that
/// panicked), it still enters what the meter has.
pub struct Admission {
    who: Who,
    route: Route,
    state: LimitState,
    meter: Meter,
    /// None once it has ended.
    open: Mutex<Option<Open>>,
}

/// Whose limits apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub workspace: WorkspaceId,
    pub user: UserId,
}

struct Open {
    limiter: Limiter,
    reservation: Option<ReservationId>,
}

impl Admission {
    pub(super) fn new(
        limiter: Limiter,
        who: Who,
        route: Route,
        state: LimitState,
        reservation: Option<ReservationId>,
    ) -> Self {
        Self {
            who,
            route,
            state,
            meter: Meter::default(),
            open: Mutex::new(Some(Open { limiter, reservation })),
        }
    }

    /// Where the request's model calls enter what they used.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    pub fn who(&self) -> &Who {
        &self.who
    }

    /// Both limits as they stand with this request admitted, for the answer's headers.
    pub fn state(&self) -> &LimitState {
        &self.state
    }

    /// Enters what the request used, and returns once it is committed. A request in which no
    /// provider answered used nothing and is not entered.
    pub async fn settle(&self) -> Result<(), Error> {
        let Some(open) = self.end() else { return Ok(()) };
        let Some(settlement) = self.settlement() else {
            open.release(&self.who, Release::Unused).await;
            return Ok(());
        };
        open.settle(&self.who, settlement).await
    }

    /// Ends an admission that no provider had room for: the rate token goes back.
    pub async fn give_back(&self) {
        if let Some(open) = self.end() {
            open.release(&self.who, Release::Unused).await;
            open.limiter.give_back(&self.who, self.state.rate.map(|rate| rate.limit)).await;
        }
    }

    fn end(&self) -> Option<Open> {
        self.open.lock().take()
    }

    fn settlement(&self) -> Option<Settlement> {
        let parts = self.meter.take();
        (!parts.is_empty()).then(|| Settlement {
            workspace: self.who.workspace.clone(),
            user: self.who.user.clone(),
            route: self.route,
            parts,
            window_rows: self.meter.take_window_rows(),
        })
    }

    /// An admission of no limiter, for tests of what comes after it.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            who: Who { workspace: "w".into(), user: "u".into() },
            route: Route::Openai,
            state: LimitState { now: crate::model::Timestamp(0), rate: None, budget: None },
            meter: Meter::default(),
            open: Mutex::new(None),
        }
    }
}

impl Open {
    async fn settle(&self, who: &Who, settlement: Settlement) -> Result<(), Error> {
        let tokens = settlement.parts.iter().map(|(_, step)| step.usage.total()).fold(0, u64::saturating_add);
        let settled = self.limiter.ledger().settle(settlement).await;
        // What could not be committed in time is queued and will be: it counts until then as settled now.
        let committed = self.limiter.reading_now();
        self.release(who, Release::Settled { tokens, committed }).await;
        settled
    }

    async fn release(&self, who: &Who, how: Release) {
        if let Some(id) = self.reservation {
            self.limiter.release(who, id, how).await;
        }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("who", &self.who)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let Some(open) = self.end() else { return };
        let (who, settlement) = (self.who.clone(), self.settlement());
        // Without a runtime the process is at its end, and shutdown has waited for every request.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let ledger = open.limiter.ledger().clone();
        ledger.outlive(async move {
            match settlement {
                // The request is gone; the writer logs what it can't write.
                Some(settlement) => drop(open.settle(&who, settlement).await),
                None => open.release(&who, Release::Unused).await,
            }
        });
    }
}
