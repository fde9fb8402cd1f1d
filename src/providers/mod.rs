//! The upstream side: which provider key answers a request, and how it is spoken to.
//!
//! [`call`] has the types that cross: what is asked, what comes back, how it fails. [`pool`] is the one way
//! to a model: it chooses among the candidates of `catalog` by what `quotas` counts, and speaks to
//! them through [`link`]: to a provider by [`WireClient`], to the built-in model by [`DemoModel`].

pub mod admin;
mod assembly;
pub mod book;
pub mod call;
mod catalog;
mod completion;
mod cooldown;
mod demo;
mod embeddings;
pub mod estimate;
mod fault;
mod headers;
mod history;
pub mod json;
pub mod link;
mod metered;
mod operation;
mod outcome;
mod page;
pub mod pool;
mod quotas;
mod reading;
pub mod records;
mod redis_leases;
mod request;
mod responses;
#[cfg(test)]
pub mod scripted;
mod secret;
mod shared;
mod sse;
mod start;
mod status;
mod unserved;
mod upstream;
mod windows;
mod wire;

pub use book::{CandidateId, Gauge, Kind, Limits};
pub use call::{Answer, CallError, Event, Events, Failure, Piece, Reply, ToolCallPart};
pub use catalog::{DEFAULT_ALIAS, ModelRow, PoolConfig, cap_name};
pub use cooldown::{Cooldown, Reason, UNTIL_CHANGED};
pub use demo::{DemoModel, Pace};
pub use headers::{LimitHeaders, WindowHeaders};
pub use link::{Sent, SentBody, StatedLimits, Target, Upstream};
pub use operation::Operation;
pub use pool::{Pool, Wiring};
pub use quotas::{Quotas, Standing, UsageSink};
pub use redis_leases::RedisLeases;
pub use request::ModelRequest;
pub use secret::{OpenError, SecretKey};
pub use shared::{LeaseAsk, LeaseEvent, LeaseNumber, SharedLeases, Taken};
pub use start::{secret_key, start};
pub use status::{ProviderDetail, ProviderRow, QuotaRow};
pub use unserved::UnservedReason;
pub use upstream::{Tally, UpstreamAnswer, UpstreamBody};
pub use wire::{Endpoint, Secret, Timeouts, WireClient};
