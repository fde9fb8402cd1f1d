//! Trying models out: a dashboard generated for a source, or a chat about a dashboard.

mod bench;
mod call;
mod form;
mod limits;
mod log;
mod start;
mod state;
mod turn;
mod wait;

pub(crate) use bench::PlaygroundPage;
pub(crate) use state::Target;
#[cfg(feature = "ssr")]
pub(crate) use turn::Outcome;
pub(crate) use turn::Reply;
