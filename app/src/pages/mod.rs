//! One file a page.

pub(crate) mod audit;
pub(crate) mod home;
pub(crate) mod keys;
pub(crate) mod login;
pub(crate) mod not_found;
pub(crate) mod playground;
pub(crate) mod providers;
pub(crate) mod setup;
pub(crate) mod workspace;
pub(crate) mod workspaces;
