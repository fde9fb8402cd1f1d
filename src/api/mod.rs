//! HTTP: one file an endpoint, in the order request, response, handler, tests. What all of them share
//! is in [`extract`] (how input is read) and [`respond`] (how errors are told).

pub mod auth;
pub mod csrf;
pub mod extract;
pub mod login;
pub mod logout;
pub mod me;
pub mod respond;
#[cfg(test)]
pub(crate) mod testing;

pub use extract::{Json, Query};
pub use respond::{ApiError, ApiResult};
