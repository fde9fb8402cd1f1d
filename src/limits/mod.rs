//! The inbound limits: the rate a user and workspace, the token budget a workspace and UTC day.
//!
//! [`Limiter::admit`] is the one gate. It reads settings and total ([`overrides`]), lets a
//! [`RateLimitStore`] check both limits and charge both in one step, and gives an [`Admission`] or a
//! refusal that says which limit, how much of it, and when to come back.

mod admission;
mod bucket;
mod budget;
mod coalesce;
mod limiter;
mod memory;
pub mod overrides;
mod run;
mod shared;
mod store;
#[cfg(test)]
mod tests;

pub use admission::{Admission, Who};
pub use limiter::{BudgetMode, Limiter};
pub use memory::MemoryStore;
pub use run::{Outcome, Pieces, Sink};
pub use shared::SharedStore;
pub use store::{Ask, BudgetAsk, Decision, RateLimitStore, Reading, Release, ReservationId, Verdict};
