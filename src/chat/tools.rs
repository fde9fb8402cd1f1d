//! The tools of a dashboard's chat: what the model may read and change.

use serde_json::{Value, json};

use super::schema;
use crate::audit::Actor;
use crate::directory::{Dashboard, Directory, Source};
use crate::model::dashboard::Spec;

/// Rows of a source that the model gets to see at once.
const ROWS: usize = 100;

/// What the tools of one turn work on.
pub(super) struct Tools<'a> {
    pub directory: &'a Directory,
    pub dashboard: &'a Dashboard,
    pub source: &'a Source,
    pub actor: &'a Actor,
}

impl Tools<'_> {
    /// Their description, as the request's `tools`.
    pub(super) fn described(&self) -> Value {
        let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let tool = |name: &str, description: &str, parameters: Value| {
            json!({
                "type": "function",
                "function": { "name": name, "description": description, "parameters": parameters },
            })
        };
        json!([
            tool("read_source", "The columns and the first rows of the dashboard's source.", nothing.clone()),
            tool("read_dashboard", "The dashboard's name and its present spec.", nothing),
            tool(
                "update_dashboard",
                "Replaces the dashboard's spec.",
                json!({
                    "type": "object",
                    "required": ["spec"],
                    "additionalProperties": false,
                    "properties": { "spec": schema::spec(&self.source.columns) },
                }),
            ),
        ])
    }

    /// Runs a tool. Whatever goes wrong is told to the model, so that it can mend it.
    pub(super) async fn call(&self, name: &str, arguments: &str) -> Value {
        match name {
            "read_source" => json!({
                "columns": self.source.columns,
                "rows": self.source.rows.iter().take(ROWS).collect::<Vec<_>>(),
                "total_rows": self.source.rows.len(),
            }),
            "read_dashboard" => match self.directory.dashboard(&self.dashboard.id).await {
                Ok(Some(now)) => json!({ "name": now.name, "spec": now.spec }),
                Ok(None) => json!({ "error": "the dashboard does not exist any more" }),
                Err(error) => json!({ "error": error.to_string() }),
            },
            "update_dashboard" => match self.update(arguments).await {
                Ok(()) => json!({ "saved": true }),
                Err(fault) => json!({ "error": fault }),
            },
            _ => {
                json!({ "error": "there is no such tool; use read_source, read_dashboard or update_dashboard" })
            }
        }
    }

    async fn update(&self, arguments: &str) -> Result<(), String> {
        #[derive(serde::Deserialize)]
        struct Arguments {
            spec: Spec,
        }
        let arguments: Arguments = serde_json::from_str(arguments)
            .map_err(|error| format!("the arguments are not valid: {error}"))?;
        arguments.spec.check(&self.source.columns)?;
        self.directory
            .save_spec(self.dashboard, &arguments.spec, self.actor)
            .await
            .map_err(|error| error.to_string())
    }
}
