//! The inbound limits: the rate a user and workspace, the token budget a workspace and UTC day.

mod admission;

pub use admission::Admission;
