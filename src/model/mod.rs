//! Plain data and pure rules.
