//! What was used: metered while a request runs, settled when it ends, written in groups.

mod meter;

pub use meter::{Meter, StepUsage};
