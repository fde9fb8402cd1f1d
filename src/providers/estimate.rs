//! How many tokens a text is, about: for reservations, and for calls whose provider doesn't say.
//!
//! No tokenizer: every model has another one. Around four characters of English make a token, two of
//! other alphabets, one of ideographs.

use serde_json::Value;

use super::{ModelRequest, Operation};

/// What the frame of a message (role, separators) costs.
const MESSAGE: u64 = 4;
/// What begins the answer.
const PRIMING: u64 = 3;
/// An image, whatever its size: about a square of 1,024 pixels in high detail. Sound and files count the same.
const ATTACHMENT: u64 = 800;

/// Counts text that comes in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextMeter {
    quarters: u64,
}

impl TextMeter {
    pub fn add(&mut self, text: &str) {
        self.quarters += if text.is_ascii() {
            text.len() as u64
        } else {
            text.chars()
                .map(|c| {
                    if c.is_ascii() {
                        1
                    } else if c < '\u{2e80}' {
                        2
                    } else {
                        4
                    }
                })
                .sum()
        };
    }

    pub fn tokens(self) -> u64 {
        self.quarters.div_ceil(4)
    }
}

/// Tokens of a text.
pub fn text(text: &str) -> u64 {
    let mut meter = TextMeter::default();
    meter.add(text);
    meter.tokens()
}

/// Tokens that a request puts in: its messages or input, tools and answer schema.
pub fn input(request: &ModelRequest) -> u64 {
    let schemas =
        |names: &[&str]| names.iter().filter_map(|name| request.member(name)).map(json).sum::<u64>();
    match request.operation() {
        Operation::Chat => {
            let messages = request.member("messages").and_then(Value::as_array).into_iter().flatten();
            messages.map(message).sum::<u64>() + schemas(&["tools", "functions", "response_format"]) + PRIMING
        }
        Operation::Embeddings => request.member("input").map_or(0, texts),
        Operation::Responses => {
            let items = match request.member("input") {
                Some(Value::String(input)) => MESSAGE + prose(input),
                Some(Value::Array(items)) => items.iter().map(item).sum(),
                _ => 0,
            };
            let instructions = request.member("instructions").and_then(Value::as_str).map_or(0, prose);
            items + instructions + schemas(&["tools", "text"]) + PRIMING
        }
    }
}

/// What a call may come to: its input, and as much output as it allows or as is typical.
pub fn estimate_call(request: &ModelRequest, typical_output: u64) -> u64 {
    let number = |name: &str| request.member(name).and_then(Value::as_u64);
    let output = match request.operation() {
        Operation::Chat => {
            let most = number("max_completion_tokens").or_else(|| number("max_tokens"));
            let answers = number("n").unwrap_or(1).clamp(1, 128);
            most.unwrap_or(typical_output).saturating_mul(answers)
        }
        Operation::Embeddings => 0,
        Operation::Responses => number("max_output_tokens").unwrap_or(typical_output),
    };
    input(request).saturating_add(output)
}

/// What is to be embedded: a text, a list of tokens, or a list of either.
fn texts(input: &Value) -> u64 {
    match input {
        Value::String(content) => text(content),
        Value::Array(each) => each.iter().map(|one| if one.is_number() { 1 } else { texts(one) }).sum(),
        _ => 0,
    }
}

/// Of a response's input: a message, or what a tool was asked and said.
fn item(item: &Value) -> u64 {
    if item.get("content").is_some() { message(item) } else { json(item) }
}

fn message(message: &Value) -> u64 {
    let content = match message.get("content") {
        Some(Value::String(content)) => prose(content),
        Some(Value::Array(parts)) => parts.iter().map(part).sum(),
        _ => 0,
    };
    let called = ["tool_calls", "function_call"].iter().filter_map(|name| message.get(*name));
    let name = message.get("name").and_then(Value::as_str).map_or(0, text);
    MESSAGE + content + called.map(json).sum::<u64>() + name
}

fn part(part: &Value) -> u64 {
    match part.get("text").and_then(Value::as_str) {
        Some(content) => prose(content),
        None => part.as_str().map_or(ATTACHMENT, prose),
    }
}

/// A text in which `data:` URLs count as attachments, not by their length.
fn prose(content: &str) -> u64 {
    const MARK: &str = ";base64,";
    let (mut meter, mut attachments, mut rest) = (TextMeter::default(), 0, content);
    while let Some(at) = rest.find(MARK) {
        let (before, after) = (&rest[..at], &rest[at + MARK.len()..]);
        let encoded = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_');
        let end = after.bytes().position(|b| !encoded(b)).unwrap_or(after.len());
        meter.add(before);
        if before.contains("data:") {
            attachments += ATTACHMENT;
        } else {
            meter.add(&after[..end]);
        }
        rest = &after[end..];
    }
    meter.add(rest);
    meter.tokens() + attachments
}

/// A value counts as its JSON text.
fn json(value: &Value) -> u64 {
    struct Counted(u64);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, value).map_or(0, |()| counted.0.div_ceil(4))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(body: Value) -> ModelRequest {
        let Value::Object(body) = body else { panic!("an object") };
        ModelRequest::new(body, false)
    }

    #[test]
    fn scripts_differ() {
        assert_eq!(text(""), 0);
        assert_eq!(text("four"), 1);
        assert_eq!(text("fours"), 2);
        assert_eq!(text("слово"), 3);
        assert_eq!(text("漢字かな"), 4);
        let mut pieces = TextMeter::default();
        "One two three".chars().for_each(|c| pieces.add(&c.to_string()));
        assert_eq!(pieces.tokens(), text("One two three"), "pieces count as the whole");
    }

    #[test]
    fn messages_and_tools_count() {
        let one = input(&request(json!({"messages": [{"role": "user", "content": "Hello there"}]})));
        assert_eq!(one, MESSAGE + 3 + PRIMING);
        let parts =
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello there"}]}]});
        assert_eq!(input(&request(parts)), one);
        let tools = json!({"messages": [{"role": "user", "content": "Hello there"}],
            "tools": [{"type": "function", "function": {"name": "read_source", "parameters": {}}}]});
        assert!(input(&request(tools)) > one + 10);
        assert_eq!(input(&request(json!({"messages": "nonsense"}))), PRIMING);
    }

    #[test]
    fn an_image_counts_as_one_however_large() {
        let url = format!("data:image/png;base64,{}", "A".repeat(400_000));
        let part = json!({"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": url}}]}]});
        assert_eq!(input(&request(part)), MESSAGE + ATTACHMENT + PRIMING);
        let inline = json!({"messages": [{"role": "user", "content": format!("See ![x]({url}) there")}]});
        let counted = input(&request(inline));
        assert!((ATTACHMENT..ATTACHMENT + 40).contains(&counted), "{counted}");
    }

    #[test]
    fn embeddings_put_nothing_out_and_responses_what_they_allow() {
        let of = |operation, body: Value| {
            let request = ModelRequest::read(body.to_string().into(), operation, false).unwrap();
            (input(&request), estimate_call(&request, 500))
        };
        for (embedded, tokens) in [
            (json!("Hello there"), 3),
            (json!(["Hello there", "four"]), 4),
            (json!([1, 2, 3]), 3),
            (json!([[1, 2], [3]]), 3),
            (json!({"no": "text"}), 0),
        ] {
            let body = json!({"input": embedded, "max_tokens": 9});
            assert_eq!(of(Operation::Embeddings, body), (tokens, tokens), "{embedded}");
        }
        let words = json!({"input": "Hello there", "instructions": "four"});
        assert_eq!(of(Operation::Responses, words), (MESSAGE + 4 + PRIMING, MESSAGE + 504 + PRIMING));
        let items = json!({"max_output_tokens": 20, "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hello there"}]},
            {"type": "function_call_output", "output": "four"}]});
        let (put_in, all) = of(Operation::Responses, items);
        assert!(put_in > MESSAGE + 3 + PRIMING + 4 && all == put_in + 20, "{put_in} {all}");
    }

    #[test]
    fn a_call_reserves_what_it_may_put_out() {
        let body = |more: Value| {
            let mut members = json!({"messages": []});
            members.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            request(members)
        };
        assert_eq!(estimate_call(&body(json!({})), 500), PRIMING + 500);
        assert_eq!(estimate_call(&body(json!({"max_tokens": 20})), 500), PRIMING + 20);
        assert_eq!(
            estimate_call(&body(json!({"max_tokens": 20, "max_completion_tokens": 30})), 500),
            PRIMING + 30
        );
        assert_eq!(estimate_call(&body(json!({"max_tokens": 20, "n": 3})), 500), PRIMING + 60);
        assert_eq!(estimate_call(&body(json!({"max_tokens": u64::MAX, "n": 3})), 500), u64::MAX);
    }
}
