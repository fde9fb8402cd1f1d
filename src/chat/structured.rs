//! Asking for JSON: once, and once more with the fault named when the answer is not valid.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{call_default, message, request};
use crate::limits::Admission;
use crate::model::{Error, Usage};
use crate::providers::{Answer, ModelRequest, Pool};

/// Says what is wrong, if anything is.
type Check<T> = Box<dyn Fn(&T) -> Result<(), String> + Send + Sync>;

/// What is asked for.
pub struct Wanted<T> {
    /// The schema's name, where the platform takes schemas.
    pub name: &'static str,
    /// As a person calls it: "dashboard spec".
    pub called: &'static str,
    pub schema: Value,
    pub messages: Vec<Value>,
    /// What the schema can't say. The fault is told to the model.
    pub check: Check<T>,
}

pub struct Got<T> {
    pub value: T,
    pub model: String,
    /// Of all calls that it took.
    pub usage: Usage,
}

impl<T: DeserializeOwned> Wanted<T> {
    /// The first request, for its estimate.
    pub fn request(&self) -> ModelRequest {
        self.request_with(&self.messages)
    }

    /// Both calls are made under the one admission, and both are charged.
    pub async fn ask(&self, pool: &Pool, admission: &Admission) -> Result<Got<T>, Error> {
        let mut messages = self.messages.clone();
        for last_try in [false, true] {
            let reply = call_default(pool, admission, self.request_with(&messages)).await?;
            let Answer::Whole { completion, .. } = reply.answer else { return Err(Error::Internal) };
            let text = text_of(&completion);
            match self.read(&text) {
                Ok(value) => return Ok(Got { value, model: reply.model, usage: admission.meter().total() }),
                Err(_) if last_try => break,
                Err(fault) => {
                    messages.push(message("assistant", &text));
                    messages.push(message(
                        "user",
                        &format!(
                            "That is not a valid {}: {fault}. Answer with the corrected JSON alone.",
                            self.called
                        ),
                    ));
                }
            }
        }
        Err(Error::Provider(format!(
            "the model's answer was no valid {}, and neither was its second; ask again, or in other words",
            self.called
        )))
    }

    fn request_with(&self, messages: &[Value]) -> ModelRequest {
        let format = json!({
            "type": "json_schema",
            "json_schema": { "name": self.name, "schema": self.schema, "strict": true },
        });
        request(messages, [("response_format", format)], false)
    }

    fn read(&self, text: &str) -> Result<T, String> {
        let value: T = serde_json::from_str(json_in(text)).map_err(|error| error.to_string())?;
        (self.check)(&value)?;
        Ok(value)
    }
}

/// The text of an answer, or the arguments of the function that it calls instead.
fn text_of(completion: &Value) -> String {
    let message = &completion["choices"][0]["message"];
    match message["content"].as_str() {
        Some(text) if !text.trim().is_empty() => text.to_owned(),
        _ => message["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The JSON in a text: bare, fenced, or with words around it.
fn json_in(text: &str) -> &str {
    let text = text.trim().trim_start_matches('\u{feff}');
    let text = match text.split_once("```") {
        Some((_, fenced)) => fenced.split("```").next().unwrap_or(fenced),
        None => text,
    };
    match (text.find('{'), text.rfind('}')) {
        (Some(first), Some(last)) if first < last => &text[first..=last],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_bare_fenced_and_amid_words() {
        for text in [
            r#"{"a":"}"}"#,
            "\n {\"a\":\"}\"}\n",
            "```json\n{\"a\":\"}\"}\n```",
            "Here you are:\n```\n{\"a\":\"}\"}\n```\nEnjoy!",
            "Sure: {\"a\":\"}\"} as asked.",
        ] {
            assert_eq!(json_in(text), r#"{"a":"}"}"#, "{text}");
        }
        assert_eq!(json_in("I would rather not."), "I would rather not.");
    }

    #[test]
    fn a_forced_functions_arguments_are_the_text() {
        let called =
            json!({"choices":[{"message":{"content":null,"tool_calls":[{"function":{"arguments":"{}"}}]}}]});
        assert_eq!(text_of(&called), "{}");
        assert_eq!(text_of(&json!({"choices":[{"message":{"content":"x"}}]})), "x");
        assert_eq!(text_of(&json!({})), "");
    }
}
