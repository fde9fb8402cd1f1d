//! The calls of the JSON API that the playground makes, their answers put into a turn's reply as they come.

use serde::{Deserialize, Serialize};
use tollkeeper::model::answers::{Done, Generated, Said};
use web_sys::AbortSignal;

use leptos::prelude::*;

use super::state::Target;
use super::turn::{Outcome, Reply, Turn};
use crate::backend::playground::draw;
use crate::browser::events::Event;
use crate::browser::http::{self, Failed};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BROKE_OFF: &str = "the answer broke off before its end; send again";

#[derive(Serialize)]
struct GenerateRequest<'a> {
    source_id: &'a str,
    prompt: &'a str,
}

#[derive(Serialize)]
struct ChatRequest {
    messages: Vec<Said>,
}

#[derive(Deserialize)]
struct Delta {
    text: String,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
}

#[derive(Deserialize)]
struct Broken {
    error: String,
}

pub(super) async fn run(turn: &Turn, said: Vec<Said>, signal: &AbortSignal) -> Result<(), Failed> {
    match &turn.target {
        Target::Source(id) => generate(turn, id, signal).await,
        Target::Dashboard(id) => chat(turn, id, said, signal).await,
    }
}

async fn generate(turn: &Turn, source: &str, signal: &AbortSignal) -> Result<(), Failed> {
    let body = written(&GenerateRequest { source_id: source, prompt: &turn.prompt });
    let response = http::post("/api/generate", &body, JSON, Some(signal)).await?;
    let Generated { spec, model, usage } = http::json(&response).await?;
    update(turn, |reply| {
        reply.spec = Some(spec.clone());
        reply.outcome = Outcome::Done { model, usage, steps: None };
    });
    // The charts are an extra: without them the spec stands for itself.
    if let Ok(figures) = draw(source.to_owned(), spec).await {
        update(turn, |reply| reply.figures = figures);
    }
    Ok(())
}

async fn chat(turn: &Turn, dashboard: &str, messages: Vec<Said>, signal: &AbortSignal) -> Result<(), Failed> {
    let url = format!("/api/dashboards/{dashboard}/chat");
    let body = written(&ChatRequest { messages });
    let response = http::post(&url, &body, EVENTS, Some(signal)).await?;
    http::events(&response, |event| update(turn, |reply| hear(reply, &event))).await?;
    update(turn, |reply| {
        if reply.outcome == Outcome::Running {
            reply.outcome = Outcome::Failed(BROKE_OFF.into());
        }
    });
    Ok(())
}

/// Events of other names are for later versions of this page.
fn hear(reply: &mut Reply, event: &Event) {
    match event.name.as_str() {
        "delta" => {
            if let Ok(Delta { text }) = serde_json::from_str(&event.data) {
                reply.text.push_str(&text);
            }
        }
        "tool" => {
            if let Ok(Tool { name }) = serde_json::from_str(&event.data) {
                reply.tools.push(name);
            }
        }
        "done" => {
            if let Ok(Done { message, model, steps, usage }) = serde_json::from_str(&event.data) {
                reply.text = message;
                reply.outcome = Outcome::Done { model, usage, steps: Some(steps) };
            }
        }
        "error" => {
            let sentence = serde_json::from_str(&event.data).map(|Broken { error }| error);
            reply.outcome = Outcome::Failed(sentence.unwrap_or_else(|_| BROKE_OFF.into()));
        }
        _ => {}
    }
}

fn written(request: &impl Serialize) -> String {
    serde_json::to_string(request).unwrap_or_default()
}

/// The page, and the turn with it, may be gone when something comes.
fn update(turn: &Turn, change: impl FnOnce(&mut Reply)) {
    let _ = turn.reply.try_update(change);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(events: &[(&str, &str)]) -> Reply {
        let mut reply = Reply::default();
        for (name, data) in events {
            hear(&mut reply, &Event { name: (*name).into(), data: (*data).into() });
        }
        reply
    }

    #[test]
    fn pieces_add_up_and_the_end_has_the_last_word() {
        let pieces = [
            ("delta", r#"{"text":"Hel"}"#),
            ("tool", r#"{"name":"read_source"}"#),
            ("delta", r#"{"text":"lo"}"#),
        ];
        let reply = heard(&pieces);
        assert_eq!((reply.text.as_str(), reply.tools.len()), ("Hello", 1));
        assert_eq!(reply.outcome, Outcome::Running);

        let done =
            r#"{"message":"Hello!","model":"demo-1","steps":2,"usage":{"input_tokens":3,"output_tokens":4}}"#;
        let reply = heard(&[pieces[0], ("done", done)]);
        assert_eq!(reply.text, "Hello!");
        assert!(matches!(reply.outcome, Outcome::Done { steps: Some(2), .. }));
    }

    #[test]
    fn an_error_keeps_what_was_said_and_unknown_events_change_nothing() {
        let reply = heard(&[
            ("delta", r#"{"text":"Hel"}"#),
            ("error", r#"{"error":"the provider failed"}"#),
            ("new", "{}"),
        ]);
        assert_eq!(reply.text, "Hel");
        assert_eq!(reply.outcome, Outcome::Failed("the provider failed".into()));
    }
}
