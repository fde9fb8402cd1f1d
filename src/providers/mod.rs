//! The upstream side: which provider key answers a request, and how it is spoken to.
//!
//! [`call`] has the types that cross: what is asked, what comes back, how it fails.

pub mod call;
mod secret;
mod windows;

pub use call::{Answer, CallError, ChatRequest, Event, Events, Failure, Piece, Reply, ToolCallPart};
pub use secret::{OpenError, SecretKey};
pub use windows::{DayCount, Span, Window};
