//! Sources and dashboards: their shapes, and what makes them valid.
//!
//! A model writes specs and drafts, so everything here assumes the worst of its input: unknown
//! members are ignored, and every fault is told in a sentence that can be handed back to the model.

use serde::{Deserialize, Serialize};

use super::ids::{NAME_MAX, is_name};

/// The most rows that a source's definition may hold inline.
pub const INLINE_ROWS_MAX: usize = 1_000;
const COLUMNS_MAX: usize = 200;
const WIDGETS_MAX: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    Csv,
    Json,
    Postgres,
}

impl SourceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            SourceKind::Csv => "csv",
            SourceKind::Json => "json",
            SourceKind::Postgres => "postgres",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [SourceKind::Csv, SourceKind::Json, SourceKind::Postgres].into_iter().find(|k| k.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(from = "NamedColumn")]
pub struct Column {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
}

/// A column as it is written: a bare name means type `text`.
#[derive(Deserialize)]
#[serde(untagged)]
enum NamedColumn {
    Bare(String),
    Full {
        name: String,
        #[serde(rename = "type", default = "text_type")]
        kind: String,
    },
}

impl From<NamedColumn> for Column {
    fn from(column: NamedColumn) -> Self {
        match column {
            NamedColumn::Bare(name) => Column { name, kind: text_type() },
            NamedColumn::Full { name, kind } => Column { name, kind },
        }
    }
}

fn text_type() -> String {
    "text".into()
}

/// A dashboard as the model proposes it and as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Spec {
    pub title: String,
    pub widgets: Vec<Widget>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Widget {
    pub id: String,
    pub kind: WidgetKind,
    pub title: String,
    pub query: Query,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum WidgetKind {
    Metric,
    Bar,
    Line,
    Table,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Query {
    pub column: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    Sum,
    Count,
    Avg,
    Min,
    Max,
}

impl Spec {
    /// # Errors
    /// The first fault, in words that name the widget and the column.
    pub fn check(&self, columns: &[Column]) -> Result<(), String> {
        if !is_name(&self.title) {
            return Err(format!("title has to be a text of 1 to {NAME_MAX} characters"));
        }
        if self.widgets.len() > WIDGETS_MAX {
            return Err(format!("widgets may be {WIDGETS_MAX} at most"));
        }
        let mut ids = std::collections::HashSet::new();
        for widget in &self.widgets {
            if widget.id.is_empty() || widget.id.chars().count() > NAME_MAX {
                return Err("every widget needs an id".into());
            }
            if !ids.insert(widget.id.as_str()) {
                return Err(format!("the widget id \"{}\" is there twice", widget.id));
            }
            if !is_name(&widget.title) {
                return Err(format!("the widget \"{}\" needs a title", widget.id));
            }
            let named = std::iter::once(&widget.query.column).chain(&widget.query.group_by);
            for column in named {
                if !columns.iter().any(|c| &c.name == column) {
                    let known: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
                    return Err(format!(
                        "the widget \"{}\" names the column \"{column}\", which the source doesn't have; it has {}",
                        widget.id,
                        known.join(", ")
                    ));
                }
            }
        }
        Ok(())
    }
}

/// A source as the model drafts it from a description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Draft {
    pub name: String,
    pub kind: SourceKind,
    pub columns: Vec<Column>,
}

impl Draft {
    /// # Errors
    /// The first fault, in words.
    pub fn check(&self) -> Result<(), String> {
        if !is_name(&self.name) {
            return Err(format!("name has to be a text of 1 to {NAME_MAX} characters"));
        }
        check_columns(&self.columns)
    }
}

/// # Errors
/// The first fault, in words.
pub fn check_columns(columns: &[Column]) -> Result<(), String> {
    if columns.is_empty() || columns.len() > COLUMNS_MAX {
        return Err(format!("columns have to be 1 to {COLUMNS_MAX}"));
    }
    let mut names = std::collections::HashSet::new();
    for column in columns {
        if !is_name(&column.name) || !is_name(&column.kind) {
            return Err("every column needs a name and a type".into());
        }
        if !names.insert(column.name.as_str()) {
            return Err(format!("the column \"{}\" is there twice", column.name));
        }
    }
    Ok(())
}

/// A row of `GET /api/sources`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct SourceRow {
    pub id: String,
    #[cfg_attr(feature = "server", schema(value_type = String))]
    pub workspace: super::WorkspaceId,
    pub name: String,
    pub kind: SourceKind,
    pub columns: Vec<Column>,
}

/// A row of `GET /api/dashboards`; with `spec` it is the answer of `GET /api/dashboards/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct DashboardRow {
    pub id: String,
    #[cfg_attr(feature = "server", schema(value_type = String))]
    pub workspace: super::WorkspaceId,
    pub source: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Spec>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        ["day", "amount"].map(|name| Column { name: name.into(), kind: text_type() }).into()
    }

    fn spec(json: &str) -> Result<(), String> {
        let spec: Spec = serde_json::from_str(json).map_err(|e| e.to_string())?;
        spec.check(&columns())
    }

    #[test]
    fn a_valid_spec_passes_and_unknown_members_are_ignored() {
        let json = r#"{"title":"T","theme":1,"widgets":[{"id":"w","kind":"bar","title":"B","size":2,
            "query":{"column":"amount","aggregate":"sum","group_by":"day"}},
            {"id":"x","kind":"table","title":"C","query":{"column":"day","aggregate":null}}]}"#;
        assert_eq!(spec(json), Ok(()));
    }

    #[test]
    fn a_bare_columns_type_is_text() {
        let columns: Vec<Column> =
            serde_json::from_str(r#"["a", {"name":"b"}, {"name":"c","type":"date","x":1}]"#).unwrap();
        assert_eq!(columns.iter().map(|c| c.kind.as_str()).collect::<Vec<_>>(), ["text", "text", "date"]);
    }

    #[test]
    fn faults_are_named() {
        let widget = |kind: &str, column: &str, aggregate: &str| {
            format!(
                r#"{{"title":"T","widgets":[{{"id":"w","kind":"{kind}","title":"B",
                "query":{{"column":"{column}","aggregate":"{aggregate}"}}}}]}}"#
            )
        };
        assert!(spec(&widget("bar", "nowhere", "sum")).unwrap_err().contains("nowhere"));
        assert!(spec(&widget("pie", "day", "sum")).unwrap_err().contains("pie"));
        assert!(spec(&widget("bar", "day", "median")).unwrap_err().contains("median"));
        assert!(spec(r#"{"title":"T"}"#).unwrap_err().contains("widgets"));
    }
}
