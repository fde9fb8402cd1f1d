//! The shapes of `/responses`: the response object, and the events of its stream. They are passed on as they
//! come; read are only usage, what was said (for an estimate), and where a stream begins to speak and ends.

use serde_json::{Value, json};

use super::upstream::Tally;
use super::{Failure, Piece, completion, fault};

/// A whole response, checked; its output is counted on the tally.
pub(super) fn read_whole(response: &Value, tally: &Tally, key: Option<&str>) -> Result<(), Failure> {
    if let Some(error) = fault::error_of(response) {
        return Err(fault::of_object(error, key));
    }
    let output = response.get("output").and_then(Value::as_array);
    let output = output.ok_or(Failure::Garbled("a response without output"))?;
    for item in output {
        for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
            let text = part.get("text").or(part.get("refusal")).and_then(Value::as_str);
            tally.say(text.unwrap_or_default());
        }
        tally.say(item.get("arguments").and_then(Value::as_str).unwrap_or_default());
    }
    if let Some(report) = completion::report_of(response) {
        tally.report(report);
    }
    Ok(())
}

/// What an event of a stream is for whoever reads it.
#[derive(Debug, PartialEq)]
pub(super) enum Told<'e> {
    /// Nothing of the answer yet: that it was begun, that an item was opened.
    Prelude,
    Speech,
    /// The last event: the response as it came to be.
    End,
    /// The provider failed.
    Error(&'e Value),
}

/// An event of a stream; what it says is counted on the tally. Nothing where it is none.
pub(super) fn read_event<'e>(event: &'e Value, tally: &Tally) -> Option<Told<'e>> {
    let kind = event.get("type").and_then(Value::as_str)?;
    if kind == "error" {
        return Some(Told::Error(event));
    }
    if kind == "response.failed" {
        let error = event.get("response").and_then(|response| response.get("error"));
        return Some(Told::Error(error.unwrap_or(event)));
    }
    if matches!(kind, "response.completed" | "response.incomplete") {
        if let Some(report) = event.get("response").and_then(completion::report_of) {
            tally.report(report);
        }
        return Some(Told::End);
    }
    let Some(of) = kind.strip_suffix(".delta") else { return Some(Told::Prelude) };
    // Sound comes as bytes in base64, which are no text.
    if !of.ends_with("audio") {
        tally.say(event.get("delta").and_then(Value::as_str).unwrap_or_default());
    }
    Some(Told::Speech)
}

/// A whole response as the one event that ends a stream, for a provider that doesn't stream.
pub(super) fn pieces_of(response: &Value) -> Vec<Piece> {
    let event = json!({ "type": "response.completed", "sequence_number": 0, "response": response });
    vec![Piece {
        data: event.to_string(),
        event: "response.completed".into(),
        finish_reason: Some("response.completed".into()),
        ..Piece::default()
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::StepUsage;
    use crate::model::Usage;

    #[test]
    fn a_response_reports_its_usage_or_is_estimated() {
        let said = json!([{"type": "message", "content": [{"type": "output_text", "text": "eight ch"}]},
                          {"type": "function_call", "arguments": "{\"a\":1}x"}]);
        let tally = Tally::new(10);
        read_whole(&json!({"error": null, "output": said}), &tally, None).unwrap();
        assert_eq!(tally.step(), StepUsage::estimated(Usage { input_tokens: 10, output_tokens: 4 }));
        let reported = json!({"output": said, "usage": {"input_tokens": 3, "output_tokens": 2}});
        read_whole(&reported, &tally, None).unwrap();
        assert_eq!(tally.step(), StepUsage::reported(Usage { input_tokens: 3, output_tokens: 2 }));
        assert!(matches!(read_whole(&json!({"choices": []}), &tally, None), Err(Failure::Garbled(_))));
    }

    #[test]
    fn events_speak_end_or_fail() {
        let tally = Tally::new(10);
        for (event, told) in [
            (json!({"type": "response.created", "response": {"usage": null}}), Some(Told::Prelude)),
            (json!({"type": "response.output_text.delta", "delta": "word"}), Some(Told::Speech)),
            (json!({"type": "response.audio.delta", "delta": "AAAA"}), Some(Told::Speech)),
            (json!({"type": "response.output_text.done", "text": "word"}), Some(Told::Prelude)),
            (json!({"ping": 1}), None),
        ] {
            assert_eq!(read_event(&event, &tally), told, "{event}");
        }
        assert_eq!(tally.step().usage.output_tokens, 1, "sound and repetitions don't count");
        let failed = json!({"type": "response.failed", "response": {"error": {"code": "server_error"}}});
        assert_eq!(read_event(&failed, &tally), Some(Told::Error(&json!({"code": "server_error"}))));
        let end = json!({"type": "response.incomplete", "response": {"usage": {"input_tokens": 5, "output_tokens": 6}}});
        assert_eq!(read_event(&end, &tally), Some(Told::End));
        assert_eq!(tally.step(), StepUsage::reported(Usage { input_tokens: 5, output_tokens: 6 }));
    }
}
