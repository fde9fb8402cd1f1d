//! What was used: metered while a request runs, settled when it ends, written in groups.

mod meter;
pub mod window_row;

pub use meter::{Meter, StepUsage};
pub use window_row::{WindowKind, WindowRow};
