//! Decides what the demo model says: JSON where JSON is asked for, a turn of a dashboard's chat
//! where its tools are offered, a few friendly words otherwise.

use serde_json::{Map, Value, json};

use super::{chat, draft, spec, table};
use crate::providers::ModelRequest;

/// What is said: words, tool calls, or both.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// The words were cut at the request's `max_tokens`.
    pub(super) cut: bool,
}

#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Said {
    pub(super) fn words(text: impl Into<String>) -> Self {
        Said { text: text.into(), ..Said::default() }
    }

    pub(super) fn finish_reason(&self) -> &'static str {
        match (self.calls.is_empty(), self.cut) {
            (false, _) => "tool_calls",
            (true, true) => "length",
            (true, false) => "stop",
        }
    }
}

/// A request as the demo model reads it.
pub(super) struct Asked<'r> {
    pub(super) messages: &'r [Value],
    tools: &'r [Value],
}

impl<'r> Asked<'r> {
    pub(super) fn offers(&self, name: &str) -> bool {
        self.parameters(name).is_some()
    }

    /// The parameters' schema of a tool that is offered.
    pub(super) fn parameters(&self, name: &str) -> Option<&'r Value> {
        let functions = self.tools.iter().filter_map(|tool| tool.get("function"));
        functions.filter(|function| function["name"] == name).map(|function| &function["parameters"]).next()
    }

    pub(super) fn call(&self, at: usize, name: &str, arguments: &Value) -> Call {
        let id = format!("call_demo_{}_{at}", self.messages.len());
        Call { id, name: name.to_owned(), arguments: arguments.to_string() }
    }

    /// What the caller said last, and where.
    pub(super) fn wish(&self) -> (usize, String) {
        let said = self.messages.iter().enumerate().rev().find(|(_, message)| message["role"] == "user");
        said.map(|(at, message)| (at, text_of(&message["content"]))).unwrap_or_default()
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

pub(super) fn to(request: &ModelRequest) -> Said {
    let list =
        |name: &str| request.member(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let asked = Asked { messages: list("messages"), tools: list("tools") };
    let choice = request.member("tool_choice").unwrap_or(&Value::Null);
    let (_, wish) = asked.wish();

    if let Some(forced) = choice["function"]["name"].as_str() {
        let arguments = value_for(asked.parameters(forced).unwrap_or(&Value::Null), &wish);
        return Said { calls: vec![asked.call(0, forced, &arguments)], ..Said::default() };
    }
    let format = request.member("response_format").unwrap_or(&Value::Null);
    match format["type"].as_str() {
        Some("json_schema") => {
            return Said::words(value_for(&format["json_schema"]["schema"], &wish).to_string());
        }
        Some("json_object") => {
            return Said::words(json!({ "demo": true, "topic": topic(&wish) }).to_string());
        }
        _ => {}
    }
    if choice != "none"
        && let Some(said) = chat::turn(&asked)
    {
        return said;
    }
    if choice == "required"
        && let Some(name) = asked.tools.first().and_then(|tool| tool["function"]["name"].as_str())
    {
        let arguments = value_for(asked.parameters(name).unwrap_or(&Value::Null), &wish);
        return Said { calls: vec![asked.call(0, name, &arguments)], ..Said::default() };
    }
    shortened(plain(&wish), request)
}

/// A value that a schema asks for: a spec, a draft, or the simplest that fits.
fn value_for(schema: &Value, wish: &str) -> Value {
    let properties = &schema["properties"];
    if properties["widgets"].is_object() {
        return json!(spec::proposal(&table::columns_of_schema(schema), wish));
    }
    if properties["spec"]["properties"]["widgets"].is_object() {
        return json!({ "spec": spec::proposal(&table::columns_of_schema(&properties["spec"]), wish) });
    }
    if properties["columns"].is_object() && properties["kind"].is_object() {
        return draft::draft(wish, &properties["columns"]["items"]["properties"]["type"]["enum"]);
    }
    simplest(schema, 0)
}

fn simplest(schema: &Value, depth: usize) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()).or_else(|| schema.get("const"))
    {
        return first.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("string") => "demo".into(),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
        Some("boolean") => false.into(),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ if depth > 8 => json!({}),
        _ => {
            let members = schema["properties"].as_object().into_iter().flatten();
            let members = members.map(|(name, schema)| (name.clone(), simplest(schema, depth + 1)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

fn plain(wish: &str) -> String {
    let about = match topic(wish) {
        topic if topic.is_empty() => "You didn't say anything yet.".to_owned(),
        topic => format!("You asked about: \"{topic}\"."),
    };
    format!(
        "Hello! This is Tollkeeper's built-in demo model. {about} I only know a few set phrases, but your request \
         took the way that every request takes: it was checked against the limits and entered in the ledger. \
         Configure a provider to get real answers."
    )
}

/// The first words of what was said, on one line.
fn topic(wish: &str) -> String {
    let words: Vec<&str> = wish.split_whitespace().take(12).collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(100).collect()
}

/// Words within the request's `max_tokens`.
fn shortened(text: String, request: &ModelRequest) -> Said {
    let number = |name: &str| request.member(name).and_then(Value::as_u64);
    let tokens = number("max_completion_tokens").or_else(|| number("max_tokens")).unwrap_or(u64::MAX);
    let most = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(4);
    match text.char_indices().nth(most) {
        Some((end, _)) => Said { text: text[..end].to_owned(), cut: true, ..Said::default() },
        None => Said::words(text),
    }
}
