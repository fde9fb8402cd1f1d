//! Tollkeeper's service: everything that needs no browser. Dependencies point downwards:
//! `api` → `chat` → `providers`, `limits` → `ledger` → `store`, and all of them know `model`.

pub mod model;

#[cfg(feature = "server")]
pub mod api;
#[cfg(feature = "server")]
pub mod audit;
#[cfg(feature = "server")]
pub mod chat;
#[cfg(feature = "server")]
pub mod clock;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod directory;
#[cfg(feature = "server")]
pub mod identity;
#[cfg(feature = "server")]
pub mod ledger;
#[cfg(feature = "server")]
pub mod limits;
#[cfg(feature = "server")]
pub mod listen;
#[cfg(feature = "server")]
pub mod providers;
#[cfg(feature = "server")]
pub mod reports;
#[cfg(feature = "server")]
pub mod services;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "server")]
pub mod telemetry;
