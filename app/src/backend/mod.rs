//! What pages ask of the service: server functions, one file a topic.
//!
//! Each is an adapter of a few lines onto a function of the service, and checks anew what the caller may
//! do: they are endpoints that anyone can ask. Those that read are called by resources. Those that change
//! something are sent by forms, which work alike with and without script: done, they lead to another
//! address; failed, they lead back to the form, which shows why (`FormAlert`).

pub(crate) mod account;
pub(crate) mod audit;
mod error;
pub(crate) mod flash;
pub(crate) mod keys;
pub(crate) mod playground;
#[cfg(feature = "ssr")]
pub(crate) mod posted;
pub(crate) mod providers;
#[cfg(feature = "ssr")]
pub(crate) mod request;
pub(crate) mod workspace;
pub(crate) mod workspaces;

pub(crate) use error::PageError;
