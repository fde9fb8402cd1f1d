//! Reading requests: every way in which input can be wrong is the right 4xx with a sentence, and
//! no sentence repeats what was sent.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;
use http::{StatusCode, header};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::respond::ApiError;
use crate::model::Error;

/// A JSON body of `/api/*`.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = read_json_body(request, state).await?;
        Ok(Json(parse(&body)?))
    }
}

/// The bytes of a body that says it is JSON.
pub async fn read_json_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Error> {
    let kind =
        request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if essence != "application/json" && !(essence.starts_with("application/") && essence.ends_with("+json")) {
        return Err(Error::UnsupportedMedia(
            "send JSON, with the header Content-Type: application/json".into(),
        ));
    }
    Bytes::from_request(request, state).await.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Error::TooLarge("the request body is larger than this route takes; send less".into())
        } else {
            Error::Malformed("the request body could not be read to its end; send it again".into())
        }
    })
}

/// Text that is no JSON is malformed (400); JSON that doesn't fit is invalid (422) and its field named.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    let malformed = |error: &serde_json::Error| {
        Error::Malformed(format!(
            "the request body is no valid JSON (line {}, column {}); check its syntax",
            error.line(),
            error.column()
        ))
    };
    serde_json::from_slice::<IgnoredAny>(body).map_err(|error| malformed(&error))?;
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        if error.inner().is_data() {
            Error::Invalid(invalid(&error.path().to_string(), &error.inner().to_string()))
        } else {
            malformed(error.inner())
        }
    })
}

/// What serde found, without the value that it found.
fn invalid(path: &str, found: &str) -> String {
    let quoted = |after: &str| {
        found.strip_prefix(after).and_then(|rest| rest.split('`').next()).map(|name| match path {
            "." | "" => name.to_owned(),
            path if path.ends_with(name) => path.to_owned(),
            path => format!("{path}.{name}"),
        })
    };
    if let Some(field) = quoted("missing field `") {
        return format!("{field} is missing");
    }
    if let Some(field) = quoted("unknown field `") {
        let field: String = field.chars().take(100).collect();
        return format!("{field} is not a field of this request");
    }
    let place = if matches!(path, "." | "") { "the request body" } else { path };
    let expected = found.rfind("expected ").map(|at| &found[at + "expected ".len()..]);
    let expected = expected.and_then(|text| text.split(" at line ").next());
    match expected {
        Some(expected) => format!("{place} is not valid: expected {expected}"),
        None => format!("{place} is not valid; see /api/openapi.json for its form"),
    }
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
    struct Body {
        source_id: String,
        n: Option<u8>,
    }

    #[test]
    fn malformed_is_400_and_invalid_is_422_and_neither_repeats_the_input() {
        for bad in [&b""[..], b"{", b"{\"source_id\":\"x\"}}", b"{\"source_id\":\"\xff\"}", b"\x00\x01"] {
            assert_eq!(parse::<Body>(bad).unwrap_err().status(), 400, "{bad:?}");
        }
        for (bad, field) in [
            ("{}", "source_id"),
            (r#"{"source_id": 5}"#, "source_id"),
            (r#"{"source_id": "x", "n": "hush"}"#, "n"),
            (r#"{"source_id": "x", "colour": "hush"}"#, "colour"),
            (r#"["hush"]"#, ""),
            (&"[".repeat(100_000).clone(), ""),
        ] {
            let error = parse::<Body>(bad.as_bytes()).unwrap_err();
            assert!([400, 422].contains(&error.status()));
            assert!(error.to_string().contains(field), "{error}");
            assert!(!error.to_string().contains("hush"), "{error}");
        }
    }
}
