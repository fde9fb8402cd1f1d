//! What a dashboard's widgets show, as far as it can be told: figures over a source's inline rows.

use serde::{Deserialize, Serialize};

/// The figures of one widget, in the order in which they are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub points: Vec<Point>,
    /// Points that were left out, the smallest of a bar chart, the last of a table.
    pub more: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The group's value; empty where a widget doesn't group.
    pub label: String,
    pub value: f64,
    /// The value for people, with thousands separators.
    pub text: String,
}
