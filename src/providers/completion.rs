//! The shapes of `chat.completion` and `chat.completion.chunk`, read as forgivingly as providers
//! write them.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::upstream::{Report, Tally};
use super::{Failure, Piece, ToolCallPart, fault};

/// A number of tokens beyond this is a provider's mistake, and no report.
const BELIEVABLE_TOKENS: u64 = 1_000_000_000_000;
/// Tool calls of one answer that are told apart by their ids.
const TOOL_CALLS_MAX: usize = 128;

/// The usage that an object reports, if any: OpenAI's names, Anthropic's, or Groq's place for it.
pub(super) fn report_of(object: &Value) -> Option<Report> {
    let usage = [object.get("usage"), object.get("x_groq").and_then(|x| x.get("usage"))];
    let usage = usage.into_iter().flatten().find(|usage| usage.is_object())?;
    let side = |names: [&str; 2]| names.into_iter().find_map(|name| tokens(usage.get(name)?));
    let report = Report {
        input: side(["prompt_tokens", "input_tokens"]),
        output: side(["completion_tokens", "output_tokens"]),
    };
    (report != Report::default()).then_some(report)
}

fn tokens(value: &Value) -> Option<u64> {
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|n| (0.0..1e12).contains(n))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0 and 1e12")]
        Some(number.ceil() as u64)
    });
    whole.filter(|n| *n <= BELIEVABLE_TOKENS)
}

/// A whole answer, checked; its output is counted on the tally.
pub(super) fn read_whole(completion: &Value, tally: &Tally, key: Option<&str>) -> Result<(), Failure> {
    if let Some(error) = fault::error_of(completion) {
        return Err(fault::of_object(error, key));
    }
    let choices = completion.get("choices").and_then(Value::as_array);
    let choices = choices.ok_or(Failure::Garbled("an answer without choices"))?;
    let first = choices.first().ok_or(Failure::Garbled("an answer without choices"))?;
    if !first.get("message").is_some_and(Value::is_object) {
        return Err(Failure::Garbled("a choice without a message"));
    }
    for message in choices.iter().filter_map(|choice| choice.get("message")) {
        said(message, &mut |text| tally.say(text));
    }
    if let Some(report) = report_of(completion) {
        tally.report(report);
    }
    Ok(())
}

/// A whole answer as the pieces of a stream, for a provider that doesn't stream.
pub(super) fn pieces_of(completion: &Value) -> Vec<Piece> {
    let mut frame = Map::new();
    for name in ["id", "created", "model", "system_fingerprint"] {
        if let Some(value) = completion.get(name) {
            frame.insert(name.into(), value.clone());
        }
    }
    frame.insert("object".into(), "chat.completion.chunk".into());
    let mut tools = ToolIndex::default();
    let mut chunk = |choices: Value, usage: Option<&Value>| {
        let mut object = frame.clone();
        object.insert("choices".into(), choices);
        if let Some(usage) = usage {
            object.insert("usage".into(), usage.clone());
        }
        let object = Value::Object(object);
        Piece { data: object.to_string(), ..read_chunk(&object, &mut tools).unwrap_or_default() }
    };
    let mut pieces = Vec::new();
    let choices = completion.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (at, choice) in choices.iter().enumerate() {
        let mut delta = choice.get("message").cloned().unwrap_or_default();
        let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten();
        for (index, call) in calls.enumerate() {
            if let Some(call) = call.as_object_mut() {
                call.insert("index".into(), index.into());
            }
        }
        let index = choice.get("index").cloned().unwrap_or_else(|| at.into());
        pieces.push(chunk(json!([{"index": index, "delta": delta, "finish_reason": null}]), None));
        let reason = choice.get("finish_reason").filter(|reason| reason.is_string());
        let reason = reason.cloned().unwrap_or_else(|| "stop".into());
        pieces.push(chunk(json!([{"index": index, "delta": {}, "finish_reason": reason}]), None));
    }
    if report_of(completion).is_some() {
        pieces.push(chunk(json!([]), completion.get("usage")));
    }
    pieces
}

/// One chunk of a stream, without its JSON text. Nothing where it is none (`{"type":"ping"}`).
pub(super) fn read_chunk(chunk: &Value, tools: &mut ToolIndex) -> Option<Piece> {
    let Some(choices) = chunk.get("choices").and_then(Value::as_array) else {
        return report_of(chunk).map(|_| Piece { only_usage: true, ..Piece::default() });
    };
    let mut piece =
        Piece { only_usage: choices.is_empty() && report_of(chunk).is_some(), ..Piece::default() };
    let zeroth = choices.iter().find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0);
    if let Some(choice) = zeroth {
        piece.finish_reason = finish_reason(choice).map(str::to_owned);
        if let Some(delta) = choice.get("delta") {
            piece.text =
                delta.get("content").map(|content| text_of(content).into_owned()).unwrap_or_default();
            let calls = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            piece.tool_calls = calls.map(|call| tools.part(call)).collect();
        }
    }
    Some(piece)
}

pub(super) fn finish_reason(choice: &Value) -> Option<&str> {
    choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty())
}

/// Whether a delta says more than whose turn it is: content, a tool call, thoughts, a refusal.
pub(super) fn speaks(delta: &Value) -> bool {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    delta.as_object().into_iter().flatten().any(|(name, value)| name != "role" && !empty(value))
}

/// Every text that a message or a delta puts out, thoughts and arguments included.
pub(super) fn said(message: &Value, each: &mut dyn FnMut(&str)) {
    for name in ["content", "reasoning_content", "reasoning", "refusal"] {
        if let Some(value) = message.get(name) {
            each(&text_of(value));
        }
    }
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let functions = calls.filter_map(|call| call.get("function")).chain(message.get("function_call"));
    for function in functions {
        for name in ["name", "arguments"] {
            if let Some(text) = function.get(name).and_then(Value::as_str) {
                each(text);
            }
        }
    }
}

/// Content is a text, or a list of parts with texts.
fn text_of(content: &Value) -> Cow<'_, str> {
    match content {
        Value::String(text) => text.into(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect::<String>()
            .into(),
        _ => "".into(),
    }
}

/// Finds which tool call a part belongs to where the provider leaves the index out: a new id
/// begins the next call, no id continues the last.
#[derive(Debug, Default)]
pub(super) struct ToolIndex {
    ids: Vec<String>,
}

impl ToolIndex {
    pub(super) fn part(&mut self, call: &Value) -> ToolCallPart {
        let named = |object: &Value, name: &str| {
            object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let function = call.get("function").unwrap_or(&Value::Null);
        let id = named(call, "id");
        let index = call.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
        ToolCallPart {
            index: index.unwrap_or_else(|| self.of_id(id.as_deref())),
            name: named(function, "name"),
            arguments: match function.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(object @ Value::Object(_)) => object.to_string(),
                _ => String::new(),
            },
            id,
        }
    }

    fn of_id(&mut self, id: Option<&str>) -> usize {
        let last = self.ids.len().saturating_sub(1);
        let Some(id) = id else { return last };
        self.ids.iter().position(|known| known == id).unwrap_or_else(|| {
            if self.ids.len() < TOOL_CALLS_MAX {
                self.ids.push(id.to_owned());
            }
            self.ids.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Usage;

    fn report(json: &Value) -> Option<(Option<u64>, Option<u64>)> {
        report_of(json).map(|report| (report.input, report.output))
    }

    #[test]
    fn a_report_of_zero_is_a_report() {
        for (object, expected) in [
            (json!({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}), Some((Some(0), Some(0)))),
            (json!({"usage": {"input_tokens": 5, "output_tokens": 6}}), Some((Some(5), Some(6)))),
            (
                json!({"x_groq": {"usage": {"prompt_tokens": 5, "completion_tokens": 6}}}),
                Some((Some(5), Some(6))),
            ),
            (json!({"usage": {"prompt_tokens": 5.0, "completion_tokens": null}}), Some((Some(5), None))),
            (json!({"usage": null, "x_groq": {"id": "r"}}), None),
            (json!({"usage": {}}), None),
            (json!({"usage": {"prompt_tokens": -1, "completion_tokens": "7"}}), None),
            (json!({"usage": {"prompt_tokens": u64::MAX, "completion_tokens": 1e300}}), None),
        ] {
            assert_eq!(report(&object), expected, "{object}");
        }
    }

    #[test]
    fn what_is_missing_from_a_report_is_estimated() {
        let tally = Tally::new(40);
        tally.say("eight ch");
        let step = tally.step();
        assert_eq!(step.usage, Usage { input_tokens: 40, output_tokens: 2 });
        assert_eq!(step.estimated, step.usage);
        tally.report(Report { input: Some(0), output: None });
        let step = tally.step();
        assert_eq!(step.usage, Usage { input_tokens: 0, output_tokens: 2 });
        assert_eq!(step.estimated, Usage { input_tokens: 0, output_tokens: 2 });
        tally.report(Report { input: None, output: Some(9) });
        assert_eq!(tally.step().usage, Usage { input_tokens: 0, output_tokens: 9 });
        assert_eq!(tally.step().estimated, Usage::default());
    }

    #[test]
    fn a_delta_speaks_when_it_says_more_than_its_role() {
        for silent in [
            json!({}),
            json!({"role": "assistant", "content": ""}),
            json!({"content": null, "tool_calls": []}),
        ] {
            assert!(!speaks(&silent), "{silent}");
        }
        for speaking in
            [json!({"content": " "}), json!({"tool_calls": [{"index": 0}]}), json!({"reasoning": "hm"})]
        {
            assert!(speaks(&speaking), "{speaking}");
        }
    }

    #[test]
    fn tool_calls_without_an_index_are_told_apart_by_id() {
        let mut tools = ToolIndex::default();
        let mut index = |call: Value| tools.part(&call).index;
        assert_eq!(index(json!({"id": "a", "function": {"name": "x", "arguments": "{}"}})), 0);
        assert_eq!(index(json!({"function": {"arguments": "…"}})), 0);
        assert_eq!(index(json!({"id": "b", "function": {"name": "y"}})), 1);
        assert_eq!(index(json!({"id": "a"})), 0);
        assert_eq!(index(json!({"id": "b", "index": 7})), 7);
    }

    #[test]
    fn a_whole_answer_comes_apart_into_pieces() {
        let completion = json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
            "message": {"role": "assistant", "content": "Hi", "tool_calls": [
                {"id": "t", "type": "function", "function": {"name": "read_source", "arguments": "{}"}}]},
            "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
        let pieces = pieces_of(&completion);
        assert_eq!(pieces.len(), 3);
        assert_eq!(
            (pieces[0].text.as_str(), pieces[0].tool_calls[0].name.as_deref()),
            ("Hi", Some("read_source"))
        );
        assert_eq!(pieces[1].finish_reason.as_deref(), Some("tool_calls"));
        assert!(pieces[2].only_usage);
        let last: Value = serde_json::from_str(&pieces[2].data).unwrap();
        assert_eq!(
            (&last["object"], &last["choices"], &last["usage"]["prompt_tokens"]),
            (&json!("chat.completion.chunk"), &json!([]), &json!(3))
        );
    }
}
