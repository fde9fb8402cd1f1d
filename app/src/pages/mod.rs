//! One file a page.

pub(crate) mod login;
pub(crate) mod not_found;
