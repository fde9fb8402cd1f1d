//! A source's draft from a few words of description, by simple rules.

use serde_json::{Value, json};

use super::table::{Role, role_of};
use crate::model::dashboard::{Column, Draft, SourceKind};

const COLUMNS_MAX: usize = 12;
const STOP_WORDS: [&str; 46] = [
    "a",
    "an",
    "the",
    "of",
    "for",
    "by",
    "per",
    "with",
    "and",
    "or",
    "from",
    "in",
    "on",
    "to",
    "our",
    "my",
    "its",
    "their",
    "each",
    "every",
    "all",
    "that",
    "which",
    "is",
    "are",
    "as",
    "at",
    "this",
    "some",
    "source",
    "data",
    "table",
    "file",
    "csv",
    "json",
    "postgres",
    "postgresql",
    "database",
    "columns",
    "column",
    "fields",
    "rows",
    "list",
    "records",
    "i",
    "we",
];

/// `types` are those that the schema allows, if it says.
pub(super) fn draft(description: &str, types: &Value) -> Value {
    let columns =
        columns(description).into_iter().map(|name| Column { kind: kind_of(&name, types), name }).collect();
    json!(Draft { name: name(description), kind: source_kind(description), columns })
}

fn source_kind(description: &str) -> SourceKind {
    let text = description.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if says(&["postgres", "database", "sql"]) {
        SourceKind::Postgres
    } else if says(&["json", "api", "endpoint", "webhook"]) {
        SourceKind::Json
    } else {
        SourceKind::Csv
    }
}

/// The description's first words, up to where it lists columns.
fn name(description: &str) -> String {
    let clause = description.split([',', ';', ':', '.', '\n']).next().unwrap_or_default();
    let clause = clause.split(" with ").next().unwrap_or_default();
    let words: Vec<&str> = clause.split_whitespace().take(6).collect();
    let text: String = words.join(" ").chars().filter(|c| !c.is_control()).take(60).collect();
    let mut chars = text.trim().chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => "Demo source".into(),
    }
}

/// The columns that the description lists, else those that its words suggest.
fn columns(description: &str) -> Vec<String> {
    let text = description.to_lowercase();
    let marks = ["columns", "fields", " with ", " containing ", " including ", ":"];
    let listed = marks.iter().filter_map(|mark| text.find(mark).map(|at| at + mark.len())).max();
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: String| {
        if !name.is_empty() && !names.contains(&name) && names.len() < COLUMNS_MAX {
            names.push(name);
        }
    };
    match listed {
        Some(at) => text[at..].replace(" and ", ",").split([',', ';', '\n', '.']).for_each(|item| {
            let words = words(item).take(3).collect::<Vec<_>>();
            add(words.join("_"));
        }),
        None => words(&text).for_each(|word| add(word.to_owned())),
    }
    if names.is_empty() { ["day", "name", "amount"].map(str::to_owned).into() } else { names }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    words.filter(|word| !STOP_WORDS.contains(word) && word.chars().count() <= 40).map(|word| match word {
        "daily" | "days" => "day",
        "weekly" | "weeks" => "week",
        "monthly" | "months" => "month",
        "yearly" | "years" | "annual" => "year",
        other => other,
    })
}

fn kind_of(name: &str, types: &Value) -> String {
    let flag = ["is_", "has_", "active", "enabled", "paid"].iter().any(|mark| name.starts_with(mark));
    let guess = match role_of(name, "") {
        _ if flag => "boolean",
        Role::Measure => "number",
        Role::Time => "date",
        Role::Category => "text",
    };
    let allowed: Vec<&str> = types.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fits = allowed.is_empty() || allowed.contains(&guess);
    if fits { guess.to_owned() } else { allowed[0].to_owned() }
}
