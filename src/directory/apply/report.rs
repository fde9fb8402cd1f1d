//! What an apply did, or in a dry run would do, as lines for a terminal.

use std::fmt;

use serde_json::{Map, Value};

/// A record's settings as the trail shows them: no secret and no content is in here.
pub(super) type Settings = Map<String, Value>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// One line for each changed record, beginning with `+`, `~` or `-`.
    pub changes: Vec<String>,
    /// One line for each record that no file made and that was left as it is, beginning with `=`.
    pub unmanaged: Vec<String>,
}

impl Report {
    pub(super) fn added(&mut self, what: &str) {
        self.changes.push(format!("+ {what}"));
    }

    pub(super) fn removed(&mut self, what: &str) {
        self.changes.push(format!("- {what}"));
    }

    /// Says what differs between the two.
    pub(super) fn changed(&mut self, what: &str, before: &Settings, after: &Settings) {
        let details: Vec<String> = after
            .iter()
            .filter(|(key, after)| before.get(*key) != Some(after))
            .map(|(key, after)| match (key.as_str(), before.get(key)) {
                ("managed", _) => "adopted".into(),
                (_, None) => format!("{key} {}", shown(key, after)),
                (_, Some(before)) => format!("{key} {} → {}", shown(key, before), shown(key, after)),
            })
            .collect();
        self.changes.push(format!("~ {what}: {}", details.join(", ")));
    }

    pub(super) fn left(&mut self, what: &str) {
        self.unmanaged.push(format!("= unmanaged {what}"));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.changes.iter().chain(&self.unmanaged) {
            writeln!(f, "{line}")?;
        }
        if self.changes.is_empty() {
            writeln!(f, "nothing to change")?;
        }
        Ok(())
    }
}

fn shown(key: &str, value: &Value) -> String {
    match (key, value) {
        ("rate_per_minute" | "daily_token_budget", Value::Null) => "inherit".into(),
        ("rate_per_minute" | "daily_token_budget", Value::Number(n)) if n.as_i64() == Some(0) => {
            "disabled".into()
        }
        ("rpm" | "rpd" | "tpm" | "tpd", Value::Null) => "unlimited".into(),
        // Said of a secret or of content, which is not shown.
        (_, Value::String(text)) if text == "changed" || text == "cleared" => text.clone(),
        _ => value.to_string(),
    }
}

/// The settings of `json!({…})`.
pub(super) fn settings(value: Value) -> Settings {
    match value {
        Value::Object(settings) => settings,
        _ => Settings::new(),
    }
}
