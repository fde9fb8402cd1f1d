//! The one gate: reads what applies, decides, and says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Semaphore;

use super::admission::{Admission, Who};
use super::coalesce::Coalesce;
use super::overrides::{self, Current};
use super::run::READ_ON_AT_ONCE;
use super::store::{Ask, BudgetAsk, RateLimitStore, Reading, Release, ReservationId, Verdict};
use crate::clock::SharedClock;
use crate::ledger::{Ledger, Refused};
use crate::model::limit::Defaults;
use crate::model::{
    BudgetRefusal, BudgetState, Error, Limit, LimitState, RateRefusal, Refusal, Route, WorkspaceId,
    decision::Reason,
};
use crate::store::Store;

/// `LLM_BUDGET_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BudgetMode {
    /// Admits while the day's total is under the budget: overshoots by the calls in flight.
    #[default]
    Gate,
    /// Each call first reserves its estimate.
    Reserve,
}

#[derive(Clone)]
pub struct Limiter(Arc<Inner>);

struct Inner {
    clock: SharedClock,
    store: Store,
    ledger: Ledger,
    rates: Arc<dyn RateLimitStore>,
    defaults: Defaults,
    mode: BudgetMode,
    /// Orders readings of the day's total and commits to it.
    readings: AtomicU64,
    reads: Coalesce<WorkspaceId, Result<(Current, Reading), Error>>,
    /// A place for each answer that is read on when its caller has left.
    reading_on: Arc<Semaphore>,
}

impl Limiter {
    pub fn new(
        store: Store,
        clock: SharedClock,
        ledger: Ledger,
        rates: Arc<dyn RateLimitStore>,
        defaults: Defaults,
        mode: BudgetMode,
    ) -> Self {
        Self(Arc::new(Inner {
            clock,
            store,
            ledger,
            rates,
            defaults,
            mode,
            readings: AtomicU64::new(1),
            reads: Coalesce::default(),
            reading_on: Arc::new(Semaphore::new(READ_ON_AT_ONCE)),
        }))
    }

    /// Checks both limits and then charges both. `estimate` is what the call may use, in tokens;
    /// only reserve mode looks at it. A refusal is counted, and spends nothing.
    pub async fn admit(&self, who: Who, route: Route, estimate: u64) -> Result<Admission, Error> {
        let inner = &self.0;
        let (current, reading) = self.current(&who.workspace).await?;
        let limits = inner.defaults.resolve(current.overrides);
        let now = inner.clock.now();
        // A reading from just before midnight says nothing about the new day.
        let used = if current.day == now.day() { current.used } else { 0 };

        let budget = match (limits.budget.limit, inner.mode) {
            (Limit::Disabled, _) => BudgetAsk::Off,
            (Limit::Of(limit), BudgetMode::Gate) => BudgetAsk::Gate { limit, used },
            (Limit::Of(limit), BudgetMode::Reserve) => BudgetAsk::Reserve { limit, used, estimate, reading },
        };
        let ask = Ask {
            workspace: who.workspace.clone(),
            user: who.user.clone(),
            now,
            rate: limits.rate.limit,
            budget,
        };
        let decision = inner.rates.decide(&ask).await?;

        let resets_at = now.day().end();
        let state = LimitState {
            now,
            rate: decision.rate,
            budget: limits.budget.limit.value().map(|limit| BudgetState { limit, used, resets_at }),
        };
        let reason = match decision.verdict {
            Verdict::Admitted { reservation } => {
                return Ok(Admission::new(self.clone(), who, route, state, reservation));
            }
            Verdict::OverRate { wait_ms } => {
                Reason::Rate(RateRefusal { limit: limits.rate.limit.number(), wait_ms })
            }
            Verdict::OverBudget { reserved } => Reason::Budget(BudgetRefusal {
                used,
                limit: limits.budget.limit.number(),
                reserved,
                resets_at,
            }),
        };
        let refused = if matches!(reason, Reason::Rate(_)) { Refused::Rate } else { Refused::Budget };
        inner.ledger.count_refusal(&who.workspace, refused);
        Err(Refusal { reason, state }.into())
    }

    /// Both limits as they stand, spending nothing: what is left for this user now.
    pub async fn peek(&self, who: &Who) -> Result<LimitState, Error> {
        let (current, _) = self.current(&who.workspace).await?;
        let limits = self.0.defaults.resolve(current.overrides);
        let now = self.0.clock.now();
        let rate = match limits.rate.limit {
            Limit::Of(limit) => Some(self.0.rates.peek(&who.workspace, &who.user, limit, now).await?),
            Limit::Disabled => None,
        };
        let used = if current.day == now.day() { current.used } else { 0 };
        let budget =
            limits.budget.limit.value().map(|limit| BudgetState { limit, used, resets_at: now.day().end() });
        Ok(LimitState { now, rate, budget })
    }

    pub(super) fn reading_on(&self) -> Arc<Semaphore> {
        self.0.reading_on.clone()
    }

    pub fn defaults(&self) -> Defaults {
        self.0.defaults
    }

    /// The workspace's settings and the day's total, read after this call began. Requests that
    /// arrive while a read is under way share the next one.
    async fn current(&self, workspace: &WorkspaceId) -> Result<(Current, Reading), Error> {
        let inner = self.0.clone();
        let of = workspace.clone();
        self.0
            .reads
            .get(workspace.clone(), move || {
                let (inner, workspace) = (inner.clone(), of.clone());
                async move {
                    let reading = Reading(inner.readings.fetch_add(1, Ordering::SeqCst));
                    let day = inner.clock.now().day();
                    let current = overrides::current(&inner.store, &workspace, day).await?;
                    Ok((current, reading))
                }
            })
            .await
            .unwrap_or(Err(Error::Internal))
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Later than every reading that has begun.
    pub(super) fn reading_now(&self) -> Reading {
        Reading(self.0.readings.fetch_add(1, Ordering::SeqCst))
    }

    pub(super) async fn release(&self, who: &Who, id: ReservationId, how: Release) {
        self.0.rates.release(&who.workspace, id, how, self.0.clock.now()).await;
    }

    pub(super) async fn give_back(&self, who: &Who, rate: Option<u64>) {
        if let Some(limit) = rate {
            self.0.rates.give_back(&who.workspace, &who.user, limit, self.0.clock.now()).await;
        }
    }
}
