//! Reads what providers say when they refuse: the many shapes of an error object.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::{Failure, headers};
use crate::model::Timestamp;

const MESSAGE_MAX: usize = 500;
const CODE_MAX: usize = 100;

/// A failure from an answer with a status of 400 or more. `body` may be anything.
pub(super) fn of_status(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    key: Option<&str>,
    now: Timestamp,
) -> Failure {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = error_of(&body);
    Failure::Status {
        status: status.as_u16(),
        retry_after_ms: headers::retry_after_ms(headers, now).or_else(|| error.and_then(retry_delay_ms)),
        reset_ms: headers::reset_ms(headers, now),
        message: message_for(status.as_u16(), error.unwrap_or(&body), key),
        code: error.and_then(code_of),
        param: error.and_then(|error| param_of(status.as_u16(), error)),
    }
}

/// A failure from an error object that came with a status of 200, whole or within a stream.
pub(super) fn of_object(error: &Value, key: Option<&str>) -> Failure {
    let status = status_of(error);
    Failure::Status {
        status,
        retry_after_ms: retry_delay_ms(error),
        reset_ms: None,
        message: message_for(status, error, key),
        code: code_of(error),
        param: param_of(status, error),
    }
}

/// The error that an object carries, if it carries one. `null`, `false` and empty ones are none.
pub(super) fn error_of(body: &Value) -> Option<&Value> {
    let body = body.as_array().and_then(|all| all.first()).unwrap_or(body);
    let error = body.get("error")?;
    let empty = match error {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    (!empty).then_some(error)
}

fn status_of(error: &Value) -> u16 {
    let numeric = |name: &str| match error.get(name)? {
        Value::Number(n) => n.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let named = ["code", "status", "status_code"].into_iter().find_map(numeric);
    if let Some(status) = named.and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n)) {
        return status;
    }
    let words =
        ["code", "type", "status"].map(|name| error.get(name).and_then(Value::as_str).unwrap_or_default());
    let says = |part: &str| words.iter().any(|word| word.to_ascii_lowercase().contains(part));
    if says("rate_limit") || says("quota") || says("resource_exhausted") || says("too_many") {
        429
    } else if says("overloaded") || says("unavailable") {
        503
    } else if says("authentication") || says("invalid_api_key") {
        401
    } else if says("permission") {
        403
    } else if says("not_found") {
        404
    } else if says("invalid") || says("context_length") {
        400
    } else {
        502
    }
}

fn code_of(error: &Value) -> Option<String> {
    ["code", "type", "status"].into_iter().find_map(|name| match error.get(name)? {
        Value::String(text) if !text.is_empty() => Some(text.chars().take(CODE_MAX).collect()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// The member that is at fault, where the provider's words on it are told too.
fn param_of(status: u16, error: &Value) -> Option<String> {
    let name = error.get("param").filter(|_| tells(status))?.as_str()?;
    (!name.is_empty()).then(|| name.chars().filter(|c| !c.is_control()).take(CODE_MAX).collect())
}

/// Whether a refusal is about the request. Others (a 401 above all) speak of the key.
fn tells(status: u16) -> bool {
    matches!(status, 400 | 404 | 413 | 422)
}

/// The provider's words, where the request is at fault.
fn message_for(status: u16, error: &Value, key: Option<&str>) -> Option<String> {
    if !tells(status) {
        return None;
    }
    let words = match error {
        Value::String(text) => text.as_str(),
        _ => ["message", "detail", "msg"].into_iter().find_map(|name| match error.get(name)? {
            Value::String(text) => Some(text.as_str()),
            Value::Array(faults) => faults.first()?.get("msg")?.as_str(),
            _ => None,
        })?,
    };
    let words = match key.filter(|key| !key.is_empty()) {
        Some(key) => words.replace(key, "…"),
        None => words.to_owned(),
    };
    let words: String =
        words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MESSAGE_MAX).collect();
    let words = words.trim();
    (!words.is_empty()).then(|| words.to_owned())
}

/// Google's `details: [{"retryDelay": "34s"}]`.
fn retry_delay_ms(error: &Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?;
    details.iter().find_map(|detail| headers::go_duration_ms(detail.get("retryDelay")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(status: u16, body: &str) -> Failure {
        let status = StatusCode::from_u16(status).unwrap();
        of_status(status, &HeaderMap::new(), body.as_bytes(), Some("sk-1"), Timestamp(0))
    }

    fn told(failure: Failure) -> (Option<String>, Option<String>) {
        let Failure::Status { message, code, .. } = failure else { panic!("a status") };
        (message, code)
    }

    #[test]
    fn the_words_of_a_400_in_many_shapes() {
        let blamed = at(400, r#"{"error":{"message":"x","param":"messages[1].role"}}"#);
        assert!(matches!(blamed, Failure::Status { param: Some(param), .. } if param == "messages[1].role"));
        for (body, words, code) in [
            (
                r#"{"error":{"message":"no such role","type":"invalid_request_error","code":null}}"#,
                Some("no such role"),
                Some("invalid_request_error"),
            ),
            (
                r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#,
                Some("too long"),
                Some("context_length_exceeded"),
            ),
            (
                r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
                Some("bad"),
                Some("400"),
            ),
            (r#"{"error":"just words"}"#, Some("just words"), None),
            (r#"{"detail":"a detail"}"#, Some("a detail"), None),
            (r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, Some("field required"), None),
            (r#"{"message":"a message"}"#, Some("a message"), None),
            (r#"{"error":{"message":"key sk-1\nis bad"}}"#, Some("key … is bad"), None),
            ("<html>", None, None),
            ("", None, None),
        ] {
            let (message, got) = told(at(400, body));
            assert_eq!((message.as_deref(), got.as_deref()), (words, code), "{body}");
        }
        let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(2_000));
        assert_eq!(told(at(422, &long)).0.unwrap().chars().count(), MESSAGE_MAX);
    }

    #[test]
    fn what_others_say_stays_here() {
        for status in [401, 403, 429, 500] {
            let (message, code) =
                told(at(status, r#"{"error":{"message":"Incorrect key sk-…","code":"x"}}"#));
            assert_eq!((message, code.as_deref()), (None, Some("x")), "{status}");
        }
    }

    #[test]
    fn an_object_with_a_status_of_200_gets_the_status_it_means() {
        for (error, status) in [
            (json!({"code": 429, "message": "slow down"}), 429),
            (json!({"code": "503"}), 503),
            (json!({"type": "rate_limit_error"}), 429),
            (json!({"type": "insufficient_quota"}), 429),
            (json!({"type": "overloaded_error"}), 503),
            (json!({"type": "invalid_request_error", "code": null}), 400),
            (json!({"code": "invalid_api_key", "type": "invalid_request_error"}), 401),
            (json!({"type": "server_error"}), 502),
            (json!({"code": 7}), 502),
            (json!("words"), 502),
        ] {
            let Failure::Status { status: got, .. } = of_object(&error, None) else { panic!("a status") };
            assert_eq!(got, status, "{error}");
        }
    }

    #[test]
    fn an_error_may_be_named_and_yet_be_none() {
        for body in [
            json!({"error": null}),
            json!({"error": {}}),
            json!({"error": ""}),
            json!({"error": false}),
            json!(3),
        ] {
            assert_eq!(error_of(&body), None);
        }
        assert!(error_of(&json!([{"error": {"code": 1}}])).is_some());
    }

    #[test]
    fn googles_delay_is_a_retry_after() {
        let body = r#"[{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"34.5s"}]}}]"#;
        let Failure::Status { retry_after_ms, .. } = at(429, body) else { panic!("a status") };
        assert_eq!(retry_after_ms, Some(34_500));
    }
}
