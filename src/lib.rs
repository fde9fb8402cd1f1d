//! Tollkeeper's service: everything that needs no browser.

pub mod model;
