//! A model call to be made. It goes out as the text that came in, byte for byte, but for the
//! two members that are ours to set: `model`, and for streams `stream_options.include_usage`.

use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Operation, json};

#[derive(Debug, Clone)]
pub struct ModelRequest {
    text: Bytes,
    /// What can be read of it, for those who have to understand it. Members that can't are left out.
    members: Map<String, Value>,
    operation: Operation,
    stream: bool,
    /// Where the value of `model` stands in the text, and that of `stream_options`.
    model: Option<Range<usize>>,
    options: Option<Range<usize>>,
}

/// Where to edit. A member that stands there twice is refused.
#[derive(Deserialize)]
struct Places<'t> {
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stream_options: Option<&'t RawValue>,
}

/// Unlike serde's own `Option`, tells `null` from what isn't there.
fn present<'de: 't, 't, D: Deserializer<'de>>(from: D) -> Result<Option<&'t RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl ModelRequest {
    /// A chat completion of Tollkeeper's own.
    pub fn new(mut members: Map<String, Value>, stream: bool) -> Self {
        if stream {
            members.insert("stream".into(), true.into());
        }
        let text = Value::Object(members.clone()).to_string();
        let options = members.get("stream_options").and_then(|_| places(&text).ok()).and_then(|(_, at)| at);
        Self { text: text.into(), members, operation: Operation::Chat, stream, model: None, options }
    }

    /// A caller's, as it came.
    ///
    /// # Errors
    /// When it is no JSON object, or names twice what may be there once.
    pub fn read(text: Bytes, operation: Operation, stream: bool) -> Result<Self, serde_json::Error> {
        let (model, options) = places(str_of(&text))?;
        let members = json::members(str_of(&text))?;
        let members = members.into_iter().filter_map(|(name, value)| Some((name, json::read(value).ok()?)));
        Ok(Self { members: members.collect(), operation, stream, model, options, text })
    }

    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Whether the answer is to come as a stream.
    pub fn stream(&self) -> bool {
        self.stream
    }

    /// A member of the body, if it is there and can be read.
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// What goes out to a provider that calls the model so.
    pub(super) fn outgoing(&self, model: &str) -> Vec<u8> {
        let mut edits = vec![("model", self.model.clone(), Value::from(model).to_string())];
        let reports_unasked = self.operation != Operation::Chat;
        if let Some(options) = (self.stream && !reports_unasked).then(|| self.options()).flatten() {
            edits.push(("stream_options", self.options.clone(), options));
        }
        edits.sort_by_key(|(_, at, _)| at.as_ref().map(|at| at.start));

        let mut out = Vec::with_capacity(self.text.len() + 128);
        let begin = self.text.iter().position(|b| *b == b'{').map_or(0, |at| at + 1);
        out.extend_from_slice(&self.text[..begin]);
        let mut copied = begin;
        for (name, at, value) in edits {
            if let Some(at) = at {
                out.extend_from_slice(&self.text[copied..at.start]);
                out.extend_from_slice(value.as_bytes());
                copied = at.end;
            } else {
                // What wasn't there comes first, so it is written before anything is copied.
                let comma = if self.members.is_empty() { "" } else { "," };
                out.extend_from_slice(format!("\"{name}\":{value}{comma}").as_bytes());
            }
        }
        out.extend_from_slice(&self.text[copied..]);
        out
    }

    /// The options with the report asked for; nothing where they ask for it already. Whether the caller
    /// sees it is for the route to decide.
    fn options(&self) -> Option<String> {
        let mut options =
            self.member("stream_options").and_then(Value::as_object).cloned().unwrap_or_default();
        let asked = options.insert("include_usage".into(), true.into());
        (asked != Some(Value::Bool(true))).then(|| Value::Object(options).to_string())
    }
}

type Spot = Option<Range<usize>>;

fn places(text: &str) -> Result<(Spot, Spot), serde_json::Error> {
    let Places { model, stream_options } = serde_json::from_str(text)?;
    let spot = |value: Option<&RawValue>| value.map(|value| json::range_in(text, value.get()));
    Ok((spot(model), spot(stream_options)))
}

/// The text of a body. What is no UTF-8 is no JSON either.
fn str_of(text: &Bytes) -> &str {
    std::str::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(text: &str, stream: bool) -> String {
        let request =
            ModelRequest::read(Bytes::copy_from_slice(text.as_bytes()), Operation::Chat, stream).unwrap();
        String::from_utf8(request.outgoing("vendor/m-1")).unwrap()
    }

    #[test]
    fn everything_but_the_models_name_goes_out_byte_for_byte() {
        let text = "\n{ \"seed\":12345678901234567890123,\"temperature\" : 1.0,\"model\" :\"small\" ,\"x\":1e-999,\
                    \"é\":\"\\u00e9 \\ud83d \\/\",\"messages\":[{\"role\":\"user\",\"content\":\"a\\u0000\"}],\"y\":{\"model\":\"x\"}, \"y\":null}\r\n";
        assert_eq!(sent(text, false), text.replacen("\"small\"", "\"vendor/m-1\"", 1));
    }

    #[test]
    fn a_streams_usage_is_always_asked_for() {
        let around =
            |options: &str| format!("{{\"model\":\"vendor/m-1\",{options}\"stream\":true,\"n\":2.0}}");
        for (came, goes) in [
            ("", "\"stream_options\":{\"include_usage\":true},"),
            ("\"stream_options\":null,", "\"stream_options\":{\"include_usage\":true},"),
            (
                "\"stream_options\": {\"include_usage\":false,\"include_obfuscation\":false},",
                "\"stream_options\": {\"include_usage\":true,\"include_obfuscation\":false},",
            ),
            (
                "\"stream_options\":{ \"include_usage\" : true },",
                "\"stream_options\":{ \"include_usage\" : true },",
            ),
        ] {
            let sent = sent(&around(came), true);
            let expected = match came {
                "" => format!("{{{goes}\"model\":\"vendor/m-1\",\"stream\":true,\"n\":2.0}}"),
                _ => around(goes),
            };
            assert_eq!(sent, expected);
        }
    }

    #[test]
    fn our_own_requests_get_a_model_and_a_stream() {
        let members = json!({"messages": [], "n": 1}).as_object().cloned().unwrap();
        let outgoing =
            |request: ModelRequest| -> Value { serde_json::from_slice(&request.outgoing("m")).unwrap() };
        assert_eq!(
            outgoing(ModelRequest::new(members.clone(), false)),
            json!({"model": "m", "messages": [], "n": 1})
        );
        assert_eq!(
            outgoing(ModelRequest::new(members, true)),
            json!({"model": "m", "stream_options": {"include_usage": true}, "messages": [], "n": 1, "stream": true})
        );
        assert_eq!(outgoing(ModelRequest::new(Map::new(), false)), json!({"model": "m"}));
    }

    #[test]
    fn what_stands_there_twice_is_refused() {
        let read = |text| ModelRequest::read(text, Operation::Chat, false);
        for text in [r#"{"model":"a","model":"b"}"#, r#"{"model":"a","mod\u0065l":"b"}"#, "[]", "\u{feff}{}"]
        {
            assert!(read(Bytes::copy_from_slice(text.as_bytes())).is_err(), "{text}");
        }
        assert!(read(Bytes::from_static(b"{\"model\":\"\xff\"}")).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_passed_on_unread() {
        let deep = format!("{{\"model\":\"m\",\"deep\":{}1{},\"n\":3}}", "[".repeat(500), "]".repeat(500));
        let request = ModelRequest::read(deep.clone().into(), Operation::Chat, false).unwrap();
        assert_eq!((request.member("deep"), request.member("n")), (None, Some(&json!(3))));
        assert_eq!(request.outgoing("m"), deep.as_bytes());
    }
}
