//! The built binary over HTTP, its commands and its tables: what the outside world relies on.
//!
//! Each test starts a server of its own, with a database in a temporary folder and a provider that
//! answers what the test says. Real time passes here, so nothing waits for it: a test that needs the
//! other process to get somewhere asks until it is there ([`support::until`]).
#![expect(clippy::unwrap_used, reason = "all of it is tests")]

mod chat;
mod commands;
mod copy;
mod durability;
mod input;
mod limits;
mod operations;
mod providers;
mod roles;
#[path = "../../../src/providers/scripted.rs"]
#[expect(dead_code, reason = "its other users need the rest of it")]
mod scripted;
mod support;
mod usage;
