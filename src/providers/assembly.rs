//! A whole answer put together from a stream's chunks, for a provider that streams unasked.

use serde_json::{Map, Value, json};

use super::completion::ToolIndex;

/// Choices, and tool calls of one, that are told apart.
const PARTS_MAX: usize = 128;

#[derive(Default)]
pub(super) struct Assembly {
    /// What the chunks say beside their choices; the last word counts.
    frame: Map<String, Value>,
    choices: Vec<Choice>,
}

#[derive(Default)]
struct Choice {
    /// All but `delta`.
    members: Map<String, Value>,
    message: Map<String, Value>,
    calls: Vec<Map<String, Value>>,
    tools: ToolIndex,
}

impl Assembly {
    pub(super) fn add(&mut self, chunk: &Value) {
        for (name, value) in chunk.as_object().into_iter().flatten() {
            match name.as_str() {
                "choices" => {
                    for choice in value.as_array().into_iter().flatten() {
                        self.add_choice(choice);
                    }
                }
                _ if value.is_null() && self.frame.contains_key(name) => {}
                _ => drop(self.frame.insert(name.clone(), value.clone())),
            }
        }
    }

    fn add_choice(&mut self, choice: &Value) {
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let Some(at) = usize::try_from(index).ok().filter(|at| *at < PARTS_MAX) else { return };
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, Choice::default);
        }
        let known = &mut self.choices[at];
        for (name, value) in choice.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("delta", Value::Object(delta)) => known.add(delta),
                ("delta", _) => {}
                _ => join(&mut known.members, name, value),
            }
        }
    }

    pub(super) fn completion(mut self) -> Value {
        let choices = self.choices.into_iter().enumerate().map(|(at, choice)| choice.whole(at)).collect();
        self.frame.insert("object".into(), "chat.completion".into());
        self.frame.insert("choices".into(), Value::Array(choices));
        Value::Object(self.frame)
    }
}

impl Choice {
    fn add(&mut self, delta: &Map<String, Value>) {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("tool_calls", Value::Array(calls)) => calls.iter().for_each(|call| self.add_call(call)),
                // Said once, though some say it on every chunk.
                ("role", _) => drop(self.message.insert(name.clone(), value.clone())),
                _ => join(&mut self.message, name, value),
            }
        }
    }

    fn add_call(&mut self, part: &Value) {
        let at = self.tools.part(part).index;
        if at >= PARTS_MAX {
            return;
        }
        if self.calls.len() <= at {
            self.calls.resize_with(at + 1, Map::new);
        }
        let call = &mut self.calls[at];
        for (name, value) in part.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("index", _) | (_, Value::Null) => {}
                ("function", Value::Object(function)) => {
                    let known = call.entry("function").or_insert_with(|| json!({}));
                    let Value::Object(known) = known else { continue };
                    for (name, value) in function {
                        // A name comes whole; arguments come in parts.
                        if name == "arguments" {
                            join(known, name, value);
                        } else if !value.is_null() {
                            known.insert(name.clone(), value.clone());
                        }
                    }
                }
                _ => drop(call.insert(name.clone(), value.clone())),
            }
        }
    }

    fn whole(mut self, at: usize) -> Value {
        if !self.calls.is_empty() {
            let calls = self.calls.into_iter().map(Value::Object).collect();
            self.message.insert("tool_calls".into(), Value::Array(calls));
        }
        self.message.entry("role").or_insert_with(|| "assistant".into());
        self.message.entry("content").or_insert(Value::Null);
        self.members.entry("index").or_insert_with(|| at.into());
        self.members.entry("finish_reason").or_insert_with(|| "stop".into());
        self.members.insert("message".into(), Value::Object(self.message));
        Value::Object(self.members)
    }
}

/// Texts and lists go on where they left off, objects member by member; of all else the last word counts.
fn join(members: &mut Map<String, Value>, name: &str, more: &Value) {
    match (members.get_mut(name), more) {
        (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
        (Some(Value::Array(items)), Value::Array(more)) => items.extend(more.iter().cloned()),
        (Some(Value::Object(known)), Value::Object(more)) => {
            more.iter().for_each(|(name, value)| join(known, name, value));
        }
        (Some(_), Value::Null) => {}
        _ => drop(members.insert(name.to_owned(), more.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_become_the_answer_that_they_are_the_pieces_of() {
        let mut whole = Assembly::default();
        for chunk in [
            json!({"id": "c", "model": "m", "object": "chat.completion.chunk", "usage": null,
                   "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]}),
            json!({"id": "c", "choices": [{"index": 0, "delta": {"content": "One ", "role": "assistant"},
                   "logprobs": {"content": [1]}}, {"index": 1, "delta": {"reasoning": "Hm"}}]}),
            json!({"id": "c", "choices": [{"index": 0, "delta": {"content": "two"}, "logprobs": {"content": [2]}}]}),
            json!({"choices": [{"index": 1, "delta": {"tool_calls": [
                   {"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": "{\"a\""}}]}}]}),
            json!({"choices": [{"index": 1, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
                   "finish_reason": "tool_calls"}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}),
        ] {
            whole.add(&chunk);
        }
        assert_eq!(
            whole.completion(),
            json!({"id": "c", "model": "m", "object": "chat.completion", "usage": {"prompt_tokens": 3}, "choices": [
                {"index": 0, "finish_reason": "stop", "logprobs": {"content": [1, 2]},
                 "message": {"role": "assistant", "content": "One two"}},
                {"index": 1, "finish_reason": "tool_calls",
                 "message": {"role": "assistant", "content": null, "reasoning": "Hm", "tool_calls": [
                    {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]}},
            ]})
        );
    }
}
