//! An audit entry in words: what changed, from what to what.

use serde_json::Value;

use crate::audit::Entry;
use crate::model::fmt::thousands;
use crate::model::reports::{AuditLine, Change};

pub fn line(entry: Entry) -> AuditLine {
    AuditLine {
        changes: changes(&entry.before, &entry.after),
        id: entry.id,
        at: entry.at,
        actor: entry.actor,
        action: entry.action,
        workspace: entry.workspace,
    }
}

/// The members that differ, in the order in which they were written.
fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let empty = serde_json::Map::new();
    let (old, new) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    names
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| Change {
            field: field(name).to_owned(),
            before: text(name, old.get(name)),
            after: text(name, new.get(name)),
        })
        .collect()
}

fn field(name: &str) -> &str {
    match name {
        "rate_per_minute" => "Rate per user",
        "daily_token_budget" => "Daily token budget",
        "rpm" => "Requests per minute",
        "rpd" => "Requests per day",
        "tpm" => "Tokens per minute",
        "tpd" => "Tokens per day",
        name => name,
    }
}

fn text(name: &str, value: Option<&Value>) -> String {
    let limit = matches!(name, "rate_per_minute" | "daily_token_budget");
    match value {
        Some(Value::Null) if limit => "inherit".into(),
        Some(Value::Number(n)) if limit && n.as_u64() == Some(0) => "disabled".into(),
        Some(Value::Null) if matches!(name, "rpm" | "rpd" | "tpm" | "tpd") => "unlimited".into(),
        Some(Value::Number(n)) => n.as_u64().map_or_else(|| n.to_string(), thousands),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            items.iter().map(|item| text(name, Some(item))).collect::<Vec<_>>().join(", ")
        }
        None | Some(Value::Null) => "none".into(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_read_as_people_say_them() {
        let before = json!({"rate_per_minute": null, "daily_token_budget": 5000});
        let after = json!({"rate_per_minute": 0, "daily_token_budget": 5000});
        let change =
            Change { field: "Rate per user".into(), before: "inherit".into(), after: "disabled".into() };
        assert_eq!(changes(&before, &after), [change]);
        assert_eq!(changes(&Value::Null, &json!({"name": "Acme"}))[0].before, "none");
        assert_eq!(
            changes(&Value::Null, &json!({"workspaces": ["acme", "globex"]}))[0].after,
            "acme, globex"
        );
    }
}
