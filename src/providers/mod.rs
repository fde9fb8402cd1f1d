//! The upstream side: which provider key answers a request, and how it is spoken to.
//!
//! [`call`] has the types that cross: what is asked, what comes back, how it fails. [`pool`] is the one way
//! to a model: it chooses among the candidates of `catalog` by what `quotas` counts, and speaks to
//! them through [`link`].

pub mod book;
pub mod call;
pub mod catalog;
pub mod cooldown;
mod history;
pub mod link;
mod metered;
mod outcome;
pub mod pool;
pub mod quotas;
mod secret;
pub mod status;
pub mod windows;

pub use book::{CandidateId, Gauge, Kind, Limits};
pub use call::{Answer, CallError, ChatRequest, Event, Events, Failure, Piece, Reply, ToolCallPart};
pub use catalog::{DEFAULT_ALIAS, ModelRow, PoolConfig, SingleModel, cap_name};
pub use cooldown::{Cooldown, Reason, UNTIL_CHANGED};
pub use link::{Sent, SentBody, StatedLimits, Target, Upstream};
pub use pool::{Pool, Wiring};
pub use quotas::{Quotas, Standing, UsageSink};
pub use secret::{OpenError, SecretKey};
pub use status::{ProviderDetail, ProviderRow, QuotaRow};
