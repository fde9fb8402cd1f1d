//! The built-in demo model: answers without a network, always the same to the same request, so that
//! everything around a model can be tried before a provider's key is at hand. It says that it is a demo.
//!
//! What it says is decided in [`reply`]; this file only paces it and puts it into OpenAI's shapes.

mod chat;
mod draft;
mod reply;
mod spec;
mod table;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};

use super::completion::{self, ToolIndex};
use super::headers::LimitHeaders;
use super::upstream::{Report, Tally, UpstreamAnswer, UpstreamBody};
use super::{Event, ModelRequest, Piece, estimate};
use crate::clock::SharedClock;
use crate::model::answers::DEMO_MODEL;
use reply::Said;

/// How fast the demo model talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Before an answer, or a stream's first piece.
    pub before: Duration,
    /// Between two pieces of a stream.
    pub piece: Duration,
}

impl Pace {
    /// As a person expects it of a quick model.
    pub const HUMAN: Pace = Pace { before: Duration::from_millis(300), piece: Duration::from_millis(30) };
    /// At once, for tests.
    pub const INSTANT: Pace = Pace { before: Duration::ZERO, piece: Duration::ZERO };
}

#[derive(Clone)]
pub struct DemoModel {
    clock: SharedClock,
    pace: Pace,
}

impl DemoModel {
    pub fn new(clock: SharedClock, pace: Pace) -> Self {
        Self { clock, pace }
    }

    /// Never fails.
    pub async fn send(&self, request: &ModelRequest) -> UpstreamAnswer {
        let said = reply::to(request);
        let tally = Tally::new(estimate::input(request));
        rest(self.pace.before).await;
        let frame = self.frame(request);
        let body = if request.stream() {
            let pieces = chunks(&frame, &said, &tally);
            UpstreamBody::Stream(Box::pin(paced(pieces, tally.clone(), self.pace.piece)), tally)
        } else {
            let completion = whole(&frame, &said, &tally);
            UpstreamBody::Whole { text: completion.to_string().into(), completion, step: tally.step() }
        };
        UpstreamAnswer { limits: LimitHeaders::default(), request_id: None, body }
    }

    /// The members that all objects of an answer share.
    fn frame(&self, request: &ModelRequest) -> Value {
        let mut hasher = DefaultHasher::new();
        request.member("messages").map(Value::to_string).hash(&mut hasher);
        let created = self.clock.now().ms().div_euclid(1000);
        json!({ "id": format!("chatcmpl-demo-{:016x}", hasher.finish()), "created": created, "model": DEMO_MODEL })
    }
}

fn object(frame: &Value, kind: &str, choices: Value) -> Value {
    let mut object = frame.clone();
    object["object"] = kind.into();
    object["choices"] = choices;
    object
}

/// The estimate so far, as the demo model's own report.
fn report(tally: &Tally) -> Value {
    let usage = tally.step().usage;
    tally.report(Report { input: Some(usage.input_tokens), output: Some(usage.output_tokens) });
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total(),
    })
}

fn whole(frame: &Value, said: &Said, tally: &Tally) -> Value {
    let calls: Vec<Value> = said
        .calls
        .iter()
        .map(|call| {
            json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.arguments } })
        })
        .collect();
    let mut message = json!({ "role": "assistant", "content": said.text });
    if !calls.is_empty() {
        message["content"] = if said.text.is_empty() { Value::Null } else { said.text.as_str().into() };
        message["tool_calls"] = calls.into();
    }
    completion::said(&message, &mut |text| tally.say(text));
    let choices = json!([{ "index": 0, "message": message, "finish_reason": said.finish_reason() }]);
    let mut completion = object(frame, "chat.completion", choices);
    completion["usage"] = report(tally);
    completion
}

/// A stream's chunks, each with the text that it puts out.
fn chunks(frame: &Value, said: &Said, tally: &Tally) -> Vec<(Piece, String)> {
    let mut tools = ToolIndex::default();
    let mut read = |object: &Value| Piece {
        data: object.to_string(),
        ..completion::read_chunk(object, &mut tools).unwrap_or_default()
    };
    let mut chunk = |delta: Value, reason: Option<&str>, text: &str| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
        (read(&object(frame, "chat.completion.chunk", choices)), text.to_owned())
    };
    let mut chunks = vec![chunk(json!({ "role": "assistant", "content": "" }), None, "")];
    for word in said.text.split_inclusive(' ') {
        chunks.push(chunk(json!({ "content": word }), None, word));
    }
    for (index, call) in said.calls.iter().enumerate() {
        let function = json!({ "name": call.name, "arguments": "" });
        let begin = json!([{ "index": index, "id": call.id, "type": "function", "function": function }]);
        chunks.push(chunk(json!({ "tool_calls": begin }), None, &call.name));
        for part in parts(&call.arguments) {
            let more = json!([{ "index": index, "function": { "arguments": part } }]);
            chunks.push(chunk(json!({ "tool_calls": more }), None, part));
        }
    }
    chunks.push(chunk(json!({}), Some(said.finish_reason()), ""));

    // What the tally will have counted by then.
    let total = Tally::new(tally.step().usage.input_tokens);
    for (_, text) in &chunks {
        total.say(text);
    }
    let mut last = object(frame, "chat.completion.chunk", json!([]));
    last["usage"] = report(&total);
    chunks.push((read(&last), String::new()));
    chunks
}

/// Arguments come in parts of two dozen characters.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(24).map_or(rest.len(), |(at, _)| at);
        let (part, more) = rest.split_at(end);
        rest = more;
        (!part.is_empty()).then_some(part)
    })
}

fn paced(
    chunks: Vec<(Piece, String)>,
    tally: Tally,
    pace: Duration,
) -> impl futures::Stream<Item = Event> + Send {
    let mut first = true;
    let end = tally.clone();
    let pieces = futures::stream::iter(chunks).then(move |(piece, text)| {
        tally.say(&text);
        let wait = if std::mem::take(&mut first) || text.is_empty() { Duration::ZERO } else { pace };
        async move {
            rest(wait).await;
            Event::Piece(piece)
        }
    });
    pieces.chain(futures::stream::once(async move {
        report(&end);
        Event::End(end.step())
    }))
}

async fn rest(span: Duration) {
    if !span.is_zero() {
        tokio::time::sleep(span).await;
    }
}

#[cfg(test)]
mod tests;
