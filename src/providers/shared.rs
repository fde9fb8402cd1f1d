//! The places that calls of all replicas take together: what [`Quotas`](super::Quotas) asks beside its own counts.

use async_trait::async_trait;

use super::book::{CandidateId, Gauge};

/// Where the replicas' leases are counted together.
#[async_trait]
pub trait SharedLeases: Send + Sync + 'static {
    /// Takes a place for a call, if all replicas together leave one.
    async fn take(&self, ask: LeaseAsk) -> Taken;

    /// Hears what becomes of the call; nobody waits for it.
    fn tell(&self, lease: LeaseNumber, event: LeaseEvent);
}

/// A place wanted for one call.
#[derive(Debug, Clone)]
pub struct LeaseAsk {
    pub id: CandidateId,
    /// This replica's counts, without the call itself.
    pub gauges: [Gauge; 5],
    /// What the call may use.
    pub tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Yes(LeaseNumber),
    /// There is room, and nothing to be told of the call: nobody counts it but this replica.
    Uncounted,
    No,
}

/// Names a lease of this replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseNumber(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEvent {
    /// The request counts from now.
    Answered,
    /// So many tokens count from now.
    Settled { tokens: u64 },
    /// The call is over: what it still held is given up.
    Ended,
}
