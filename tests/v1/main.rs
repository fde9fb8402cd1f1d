//! `/v1` as its clients meet it.

#[path = "../../src/providers/scripted.rs"]
#[expect(dead_code, reason = "not all of it is used here")]
mod scripted;
mod site;

mod calls;
mod errors;
mod fidelity;
mod streams;
