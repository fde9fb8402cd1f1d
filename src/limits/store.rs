//! Where buckets and reservations are kept, as the limiter sees it.

use async_trait::async_trait;

use crate::model::{Error, Limit, RateState, Timestamp, UserId, WorkspaceId};

/// One decision to be made: both limits checked, then both charged, in one step that no other
/// decision on the same workspace can come between.
#[derive(Debug, Clone)]
pub struct Ask {
    pub workspace: WorkspaceId,
    pub user: UserId,
    pub now: Timestamp,
    pub rate: Limit,
    pub budget: BudgetAsk,
}

#[derive(Debug, Clone, Copy)]
pub enum BudgetAsk {
    /// No budget.
    Off,
    /// Admit while the recorded total is under the budget.
    Gate { limit: u64, used: u64 },
    /// Admit when the recorded total, what calls in flight hold and this estimate fit together.
    Reserve { limit: u64, used: u64, estimate: u64, reading: Reading },
}

/// When a total was read, in the order of reads and commits: what was settled later is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reading(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Admitted {
        reservation: Option<ReservationId>,
    },
    /// The budget stands in the way; `reserved` where only calls in flight do.
    OverBudget {
        reserved: Option<u64>,
    },
    OverRate {
        wait_ms: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The bucket after the decision; none while the rate is disabled.
    pub rate: Option<RateState>,
}

/// Names a reservation until it is released; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReservationId(pub u64);

/// How a reservation ends.
#[derive(Debug, Clone, Copy)]
pub enum Release {
    /// Nothing was used.
    Unused,
    /// `tokens` are in the ledger for every reading that began after `committed`; an older reading
    /// does not have them yet.
    Settled { tokens: u64, committed: Reading },
}

/// Buckets a (workspace, user) and reservations a workspace.
#[async_trait]
pub trait RateLimitStore: Send + Sync + 'static {
    async fn decide(&self, ask: &Ask) -> Result<Decision, Error>;

    /// The bucket as it stands, without spending.
    async fn peek(
        &self,
        workspace: &WorkspaceId,
        user: &UserId,
        limit: u64,
        now: Timestamp,
    ) -> Result<RateState, Error>;

    /// Returns the token of an admission that no provider had room for.
    async fn give_back(&self, workspace: &WorkspaceId, user: &UserId, limit: u64, now: Timestamp);

    /// Ends a reservation; a second time changes nothing.
    async fn release(&self, workspace: &WorkspaceId, id: ReservationId, how: Release, now: Timestamp);
}
