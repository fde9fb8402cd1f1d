//! The upstream side: which provider key answers a request, and how it is spoken to.
//!
//! [`call`] has the types that cross: what is asked, what comes back, how it fails. [`WireClient`]
//! speaks to one provider.

pub mod call;
mod completion;
pub mod estimate;
mod fault;
mod headers;
mod reading;
#[cfg(test)]
pub mod scripted;
mod sse;
mod upstream;
mod wire;

pub use call::{Answer, CallError, ChatRequest, Event, Events, Failure, Piece, Reply, ToolCallPart};
pub use headers::{LimitHeaders, WindowHeaders};
pub use upstream::{Tally, UpstreamAnswer, UpstreamBody};
pub use wire::{Endpoint, Secret, Timeouts, WireClient};
