//! HTTP: one file an endpoint, in the order request, response, handler, tests. What all of them share
//! is in [`extract`] (how input is read) and [`respond`] (how errors are told).

pub mod extract;
pub mod respond;

pub use extract::{Json, Query};
pub use respond::{ApiError, ApiResult};
