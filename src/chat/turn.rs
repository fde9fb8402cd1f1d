//! One turn of a dashboard's chat: the model is called, its tools are run, until it answers in words.

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::tools::Tools;
use super::{call_default, message, request};
use crate::audit::Actor;
use crate::directory::{Dashboard, Directory, Source};
use crate::limits::{Admission, Sink};
use crate::model::Error;
use crate::model::answers::{Done, Said, Speaker};
use crate::providers::{Answer, Event, Events, ModelRequest, Pool, ToolCallPart};

/// Model calls a turn may take. The last is made without tools, so that it has to answer.
const STEPS_MAX: u32 = 6;
/// Tools that one step may ask for; more are not run.
const CALLS_MAX: usize = 16;

/// What is told while a turn runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A piece of the message.
    Delta(String),
    /// A tool is being run.
    Tool(String),
    Done(Done),
}

pub struct Turn {
    pub pool: Pool,
    pub directory: Directory,
    pub dashboard: Dashboard,
    pub source: Source,
    pub actor: Actor,
    pub said: Vec<Said>,
}

/// A tool that the model asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl Turn {
    /// The first request, for its estimate.
    pub fn first_request(&self) -> ModelRequest {
        request(&self.opening(), [("tools", self.tools().described())], false)
    }

    /// Runs the turn. With a sink the message is told in pieces as it comes.
    pub async fn run(&self, admission: &Admission, sink: Option<&Sink<Told>>) -> Result<Done, Error> {
        let tools = self.tools();
        let described = tools.described();
        let mut messages = self.opening();
        let mut text = String::new();
        let mut steps = 0;
        loop {
            steps += 1;
            let offered = (steps < STEPS_MAX).then(|| ("tools", described.clone()));
            let request = request(&messages, offered, sink.is_some());
            let reply = call_default(&self.pool, admission, request).await?;
            // A step's words are set off from those of the step before.
            let gap = if text.is_empty() { "" } else { "\n\n" };
            let (words, calls) = match reply.answer {
                Answer::Whole { completion, .. } => heard_whole(&completion),
                Answer::Stream(events) => hear(events, gap, sink).await?,
            };
            if !words.is_empty() {
                text.push_str(gap);
                text.push_str(&words);
            }
            let left = sink.is_some_and(Sink::caller_left);
            if calls.is_empty() || steps == STEPS_MAX || left {
                let usage = admission.meter().total();
                return Ok(Done { message: text, model: reply.model, steps, usage });
            }
            messages.push(asked(&words, &calls));
            for call in &calls {
                if let Some(sink) = sink {
                    sink.send(Told::Tool(call.name.clone())).await;
                }
                let result = tools.call(&call.name, &call.arguments).await;
                messages
                    .push(json!({ "role": "tool", "tool_call_id": call.id, "content": result.to_string() }));
            }
        }
    }

    fn tools(&self) -> Tools<'_> {
        Tools {
            directory: &self.directory,
            dashboard: &self.dashboard,
            source: &self.source,
            actor: &self.actor,
        }
    }

    fn opening(&self) -> Vec<Value> {
        let rules = format!(
            "You help with the dashboard \"{}\" over the source \"{}\". Read the source and the dashboard with your \
             tools before you speak of them, and change the dashboard with update_dashboard when you are asked to. \
             Be brief.",
            self.dashboard.name, self.source.name
        );
        let said = self.said.iter().map(|said| {
            let role = if said.role == Speaker::User { "user" } else { "assistant" };
            message(role, &said.content)
        });
        std::iter::once(message("system", &rules)).chain(said).collect()
    }
}

/// The words and the tool calls of a whole answer.
fn heard_whole(completion: &Value) -> (String, Vec<Call>) {
    let message = &completion["choices"][0]["message"];
    let words = message["content"].as_str().unwrap_or_default().to_owned();
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let calls = calls.iter().take(CALLS_MAX).map(|call| Call {
        id: text(&call["id"]),
        name: text(&call["function"]["name"]),
        arguments: text(&call["function"]["arguments"]),
    });
    (words, calls.collect())
}

/// Listens to a stream to its end, passing its words on as they come.
async fn hear(
    mut events: Events,
    gap: &str,
    sink: Option<&Sink<Told>>,
) -> Result<(String, Vec<Call>), Error> {
    let mut words = String::new();
    let mut calls: Vec<Call> = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Event::Piece(piece) => {
                if !piece.text.is_empty() {
                    if let Some(sink) = sink {
                        let gap = if words.is_empty() { gap } else { "" };
                        sink.send(Told::Delta(format!("{gap}{}", piece.text))).await;
                    }
                    words.push_str(&piece.text);
                }
                for part in piece.tool_calls {
                    add_part(&mut calls, part);
                }
            }
            Event::End(_) => break,
            Event::Cut { error, .. } => return Err(Error::Provider(error)),
        }
    }
    Ok((words, calls))
}

fn add_part(calls: &mut Vec<Call>, part: ToolCallPart) {
    if part.index >= CALLS_MAX {
        return;
    }
    if calls.len() <= part.index {
        calls.resize_with(part.index + 1, Call::default);
    }
    let call = &mut calls[part.index];
    if let Some(id) = part.id {
        call.id = id;
    }
    if let Some(name) = part.name {
        call.name = name;
    }
    call.arguments.push_str(&part.arguments);
}

/// The assistant's message that asked for the tools, as the next request repeats it.
fn asked(words: &str, calls: &[Call]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| {
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": call.arguments },
            })
        })
        .collect();
    let content = if words.is_empty() { Value::Null } else { Value::from(words) };
    json!({ "role": "assistant", "content": content, "tool_calls": calls })
}
