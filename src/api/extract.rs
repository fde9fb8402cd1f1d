//! Reading requests: every way in which input can be wrong is the right 4xx with a sentence, and
//! no sentence repeats what was sent.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, Request};
use futures::StreamExt as _;
use http::header;
use http::request::Parts;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::respond::ApiError;
use crate::model::Error;
use crate::model::error::shown;

/// The largest body of `/api/*`, in bytes.
const BODY_MAX: usize = 1 << 20;
/// A body has to come to its end within this time.
const BODY_WITHIN: Duration = Duration::from_mins(2);
/// What is read past the largest body, in bytes, and for how long.
const OVERFLOW_MAX: usize = 64 << 20;
const OVERFLOW_WITHIN: Duration = Duration::from_secs(15);

/// A JSON body of `/api/*`.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let body = read_json_body(request, BODY_MAX).await?;
        Ok(Json(parse(&body)?))
    }
}

/// The bytes of a body that says it is JSON, `most` of them at most.
pub async fn read_json_body(request: Request, most: usize) -> Result<Bytes, Error> {
    let kind =
        request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if essence != "application/json" && !(essence.starts_with("application/") && essence.ends_with("+json")) {
        return Err(Error::UnsupportedMedia(
            "send JSON, with the header Content-Type: application/json".into(),
        ));
    }
    let waits_for_leave = request.headers().contains_key(header::EXPECT);
    let body = request.into_body();
    let too_large = || {
        let most = most >> 20;
        Error::TooLarge(format!(
            "the request body is larger than the {most} MiB that this route takes; send less"
        ))
    };
    if body.size_hint().lower() > most as u64 {
        if !waits_for_leave {
            read_past(body.into_data_stream());
        }
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_WITHIN, collect(body, most)).await {
        Ok(Ok(Some(body))) => Ok(body.into()),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(_)) => {
            Err(Error::Malformed("the request body could not be read to its end; send it again".into()))
        }
        Err(_) => {
            Err(Error::Malformed("the request body did not come to its end in time; send it again".into()))
        }
    }
}

/// Nothing where it is larger.
async fn collect(body: Body, most: usize) -> Result<Option<Vec<u8>>, axum::Error> {
    let mut parts = body.into_data_stream();
    let mut whole = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part?;
        if whole.len() + part.len() > most {
            read_past(parts);
            return Ok(None);
        }
        whole.extend_from_slice(&part);
    }
    Ok(Some(whole))
}

/// Reads on while the answer is under way, so that a client that first sends all of its request comes to hear why it
/// is refused and doesn't just find the connection closed.
fn read_past(mut parts: BodyDataStream) {
    let mut left = OVERFLOW_MAX;
    let reading = async move {
        while let Some(Ok(part)) = parts.next().await {
            let Some(less) = left.checked_sub(part.len()) else { break };
            left = less;
        }
    };
    tokio::spawn(tokio::time::timeout(OVERFLOW_WITHIN, reading));
}

/// What is wrong with a body.
#[derive(Debug)]
pub enum Fault {
    /// No JSON.
    Malformed(String),
    /// JSON that doesn't fit: which member, and a sentence that names it.
    Invalid { field: Option<String>, sentence: String },
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed(sentence) => Error::Malformed(sentence),
            Fault::Invalid { sentence, .. } => Error::Invalid(sentence),
        }
    }
}

/// Text that is no JSON is malformed (400); JSON that doesn't fit is invalid (422) and its field named.
pub fn parse<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Fault> {
    let malformed = |error: &serde_json::Error| {
        Fault::Malformed(format!(
            "the request body is no valid JSON (line {}, column {}); check its syntax",
            error.line(),
            error.column()
        ))
    };
    serde_json::from_slice::<IgnoredAny>(body).map_err(|error| malformed(&error))?;
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        if error.inner().is_data() {
            invalid(&error.path().to_string(), &error.inner().to_string())
        } else {
            malformed(error.inner())
        }
    })
}

/// What serde found, without the value that it found.
fn invalid(path: &str, found: &str) -> Fault {
    let at = |field: String, how: &str| {
        let field: String = field.chars().take(100).collect();
        Fault::Invalid { sentence: format!("{field} {how}"), field: Some(field) }
    };
    let quoted = |after: &str| {
        found.strip_prefix(after).and_then(|rest| rest.split('`').next()).map(|name| match path {
            "." | "" => name.to_owned(),
            path if path.ends_with(name) => path.to_owned(),
            path => format!("{path}.{name}"),
        })
    };
    if let Some(field) = quoted("missing field `") {
        return at(field, "is missing");
    }
    if let Some(field) = quoted("unknown field `") {
        return at(shown(&field, 100), "is not a field of this request");
    }
    if let Some(field) = quoted("duplicate field `") {
        return at(field, "is there twice; send it once");
    }
    let field = Some(path.to_owned()).filter(|path| !matches!(path.as_str(), "." | ""));
    let place = field.as_deref().unwrap_or("the request body");
    let expected = found.rfind("expected ").map(|at| &found[at + "expected ".len()..]);
    let expected = expected.and_then(|text| text.split(" at line ").next());
    let sentence = match expected {
        Some(expected) => format!("{place} is not valid: expected {expected}"),
        None => format!("{place} is not valid; see /api/openapi.json for its form"),
    };
    Fault::Invalid { field, sentence }
}

/// The parts of the path that the route names.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        axum::extract::Path::<T>::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Path(value)| Path(value))
            .map_err(|_| {
                Error::Malformed("the address can't be read; escape what is no plain text in it".into())
                    .into()
            })
    }
}

/// A query string.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // No text that is stored has it, and PostgreSQL takes it in none.
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(Error::Invalid(
                "a parameter of the address holds a NUL character; leave it out".into(),
            )
            .into());
        }
        axum::extract::Query::<T>::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(value)| Query(value))
            .map_err(|_| {
                Error::Invalid(
                    "a parameter of the address is not valid; see /api/openapi.json for their form".into(),
                )
                .into()
            })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only parsed")]
    struct Sent {
        source_id: String,
        n: Option<u8>,
    }

    #[tokio::test]
    async fn a_body_has_a_largest_size() {
        let request = |size: usize, expect: &[&str]| {
            let mut request = Request::post("/").header("content-type", "application/json");
            for value in expect {
                request = request.header("expect", *value);
            }
            request.body(Body::from(vec![b' '; size])).unwrap()
        };
        assert_eq!(read_json_body(request(10, &[]), 10).await.unwrap().len(), 10);
        assert_eq!(read_json_body(request(11, &[]), 10).await.unwrap_err().status(), 413);
        assert_eq!(read_json_body(request(11, &["100-continue"]), 10).await.unwrap_err().status(), 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_400() {
        let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let request = Request::post("/").header("content-type", "application/json").body(never).unwrap();
        assert_eq!(read_json_body(request, 10).await.unwrap_err().status(), 400);
    }

    #[test]
    fn malformed_is_400_and_invalid_is_422_and_neither_repeats_the_input() {
        for bad in [&b""[..], b"{", b"{\"source_id\":\"x\"}}", b"{\"source_id\":\"\xff\"}", b"\x00\x01"] {
            assert_eq!(Error::from(parse::<Sent>(bad).unwrap_err()).status(), 400, "{bad:?}");
        }
        for (bad, field) in [
            ("{}", "source_id"),
            (r#"{"source_id": 5}"#, "source_id"),
            (r#"{"source_id": "x", "n": "hush"}"#, "n"),
            (r#"{"source_id": "x", "colour": "hush"}"#, "colour"),
            (r#"{"source_id": "x", "n": 1, "n": 2}"#, "n is there twice"),
            (r#"["hush"]"#, ""),
            (&"[".repeat(100_000).clone(), ""),
        ] {
            let error = Error::from(parse::<Sent>(bad.as_bytes()).unwrap_err());
            assert!([400, 422].contains(&error.status()));
            assert!(error.to_string().contains(field), "{error}");
            assert!(!error.to_string().contains("hush"), "{error}");
        }
    }
}
