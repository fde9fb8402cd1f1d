//! JSON schemas of what models are asked for, and the words that go with them.

use serde_json::{Value, json};

use super::message;
use crate::model::dashboard::Column;

/// A dashboard spec over a source with these columns. The columns' names are an `enum`, so a
/// platform that enforces schemas can't be given one that isn't there.
pub fn spec(columns: &[Column]) -> Value {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let query = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["column", "aggregate", "group_by"],
        "properties": {
            "column": { "type": "string", "enum": names },
            "aggregate": { "type": ["string", "null"], "enum": ["sum", "count", "avg", "min", "max", null] },
            "group_by": { "type": ["string", "null"], "enum": names.iter().map(|n| json!(n)).chain([Value::Null]).collect::<Vec<_>>() },
        },
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["title", "widgets"],
        "properties": {
            "title": { "type": "string" },
            "widgets": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["id", "kind", "title", "query"],
                    "properties": {
                        "id": { "type": "string" },
                        "kind": { "type": "string", "enum": ["metric", "bar", "line", "table"] },
                        "title": { "type": "string" },
                        "query": query,
                    },
                },
            },
        },
    })
}

/// A source drafted from a description.
pub fn draft() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "kind", "columns"],
        "properties": {
            "name": { "type": "string" },
            "kind": { "type": "string", "enum": ["csv", "json", "postgres"] },
            "columns": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["name", "type"],
                    "properties": {
                        "name": { "type": "string" },
                        "type": { "type": "string", "enum": ["text", "number", "date", "boolean"] },
                    },
                },
            },
        },
    })
}

/// The messages that ask for a dashboard.
pub fn spec_messages(source: &str, columns: &[Column], prompt: &str) -> Vec<Value> {
    let columns: Vec<String> = columns.iter().map(|c| format!("{} ({})", c.name, c.kind)).collect();
    let rules = format!(
        "You design dashboards. Answer with JSON alone: an object with \"title\" and \"widgets\"; each widget has \
         \"id\", \"kind\" (metric, bar, line or table), \"title\" and \"query\" with \"column\", \"aggregate\" (sum, \
         count, avg, min, max or null) and \"group_by\" (a column or null). Name no column but those of the source \
         \"{source}\": {}.",
        columns.join(", ")
    );
    vec![message("system", &rules), message("user", prompt)]
}

/// The messages that ask for a source's draft.
pub fn draft_messages(description: &str) -> Vec<Value> {
    let rules = "You define data sources. Answer with JSON alone: an object with \"name\", \"kind\" (csv, json or \
                 postgres) and \"columns\", a list of objects with \"name\" and \"type\" (text, number, date or boolean).";
    vec![message("system", rules), message("user", description)]
}
