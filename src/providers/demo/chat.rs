//! A turn of a dashboard's chat: reads with the tools first, changes the dashboard when asked to, and
//! then says what it saw.

use serde_json::{Value, json};

use super::reply::{Asked, Said};
use super::spec;
use super::table::{Col, Table, columns_of_schema};

const READS: [&str; 2] = ["read_dashboard", "read_source"];
const UPDATE: &str = "update_dashboard";

/// What is said next, if this is a dashboard's chat.
pub(super) fn turn(asked: &Asked<'_>) -> Option<Said> {
    let (begun, wish) = asked.wish();
    let results = results(&asked.messages[begun.min(asked.messages.len())..]);
    let result = |name: &str| results.iter().find(|(called, _)| *called == name).map(|(_, result)| result);

    let unread: Vec<&str> =
        READS.into_iter().filter(|name| asked.offers(name) && result(name).is_none()).collect();
    if !unread.is_empty() {
        let calls = unread.iter().enumerate().map(|(at, name)| asked.call(at, name, &json!({})));
        return Some(Said { calls: calls.collect(), ..Said::default() });
    }

    let table = result("read_source").map(Table::read).unwrap_or_default();
    let dashboard = result("read_dashboard").unwrap_or(&Value::Null);
    let columns: Vec<Col> = match asked.parameters(UPDATE) {
        Some(schema) if table.columns.is_empty() => columns_of_schema(&schema["properties"]["spec"]),
        _ => table.columns.clone(),
    };
    let change = || {
        let now = serde_json::from_value(dashboard["spec"].clone()).ok();
        spec::changed(now, &columns, &wish)
    };
    let updated = result(UPDATE);
    if updated.is_none() && asked.offers(UPDATE) && spec::wants_change(&wish) {
        let (spec, _) = change();
        return Some(Said {
            calls: vec![asked.call(0, UPDATE, &json!({ "spec": spec }))],
            ..Said::default()
        });
    }
    if results.is_empty() {
        return None;
    }

    let mut sentences = vec!["Demo model here.".to_owned()];
    match updated.map(|result| result["error"].as_str()) {
        Some(Some(error)) => sentences.push(format!("The change was not taken: {error}")),
        Some(None) => {
            let on = dashboard["name"].as_str().map(|name| format!(" on \"{name}\"")).unwrap_or_default();
            sentences.push(format!("{}{on}.", change().1));
        }
        None => {}
    }
    if let Some(error) = result("read_source").and_then(|result| result["error"].as_str()) {
        sentences.push(format!("The source can't be read: {error}"));
    } else if result("read_source").is_some() {
        sentences.push(table.summary(&wish));
    }
    Some(Said::words(sentences.join(" ")))
}

/// What the tools answered in this turn, by their names, in the order of the calls.
fn results(turn: &[Value]) -> Vec<(&str, Value)> {
    let calls = turn.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    calls
        .filter_map(|call| {
            let (id, name) = (&call["id"], call["function"]["name"].as_str()?);
            let answer = turn.iter().find(|m| m["role"] == "tool" && m["tool_call_id"] == *id)?;
            let content = answer["content"].as_str().unwrap_or_default();
            Some((name, serde_json::from_str(content).unwrap_or_default()))
        })
        .collect()
}
