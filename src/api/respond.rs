//! Errors on the wire: `{"error": sentence}` on `/api`, OpenAI's shape on `/v1`.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::json;

use super::extract::Fault;
use crate::model::{Error, LimitState};

pub type ApiResult<T> = Result<T, ApiError>;

static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The form of every error of `/api/*`, for its description.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ErrorBody {
    /// One sentence: what happened and what to do.
    pub error: String,
}

/// An error of `/api/*`.
#[derive(Debug)]
pub struct ApiError(pub Error);

impl<E: Into<Error>> From<E> for ApiError {
    fn from(error: E) -> Self {
        ApiError(error.into())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody { error: self.0.to_string() };
        (status(&self.0), headers(&self.0), axum::Json(body)).into_response()
    }
}

/// An error of `/v1/*`.
#[derive(Debug)]
pub struct OpenAiError {
    error: Error,
    param: Option<String>,
    code: Option<&'static str>,
}

impl OpenAiError {
    /// One that a member of the request is to blame for.
    pub fn about(param: impl Into<String>, error: impl Into<Error>) -> Self {
        Self { error: error.into(), param: Some(param.into()), code: None }
    }

    pub fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// What is wrong with a body.
    pub fn in_body(fault: Fault) -> Self {
        match fault {
            Fault::Invalid { field: Some(field), sentence } => Self::about(field, Error::Invalid(sentence)),
            fault => Error::from(fault).into(),
        }
    }
}

impl<E: Into<Error>> From<E> for OpenAiError {
    fn from(error: E) -> Self {
        OpenAiError { error: error.into(), param: None, code: None }
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let Self { error, param, code } = self;
        let mut body = openai_body(&error);
        if let Some(param) = param {
            body["error"]["param"] = param.into();
        }
        if let Some(code) = code {
            body["error"]["code"] = code.into();
        }
        let mut headers = headers(&error);
        if let Error::Refused(refusal) = &error {
            headers.extend(openai_limit_headers(&refusal.state));
        }
        (status(&error), headers, axum::Json(body)).into_response()
    }
}

/// `{"error": {"message", "type", "param", "code"}}`, also the payload of an error amid a stream.
pub fn openai_body(error: &Error) -> serde_json::Value {
    let (kind, code) = match error {
        Error::Rejected(rejection) => ("invalid_request_error", rejection.code.as_deref()),
        Error::Refused(refusal) => (refusal.openai_type(), Some(refusal.openai_code())),
        Error::Unauthenticated(_) => ("invalid_request_error", Some("invalid_api_key")),
        Error::Forbidden(_) => ("invalid_request_error", Some("insufficient_permissions")),
        Error::Throttled { .. } => ("requests", Some("rate_limit_exceeded")),
        Error::Provider(_) => ("server_error", Some("provider_failed")),
        Error::NoRoom { .. } => ("server_error", Some("no_provider_room")),
        Error::Unavailable(_) | Error::Internal => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    let param = if let Error::Rejected(rejection) = error { rejection.param.as_deref() } else { None };
    json!({ "error": { "message": error.to_string(), "type": kind, "param": param, "code": code } })
}

fn status(error: &Error) -> StatusCode {
    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn headers(error: &Error) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(seconds) = error.retry_after_s() {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if let Error::Refused(refusal) = error {
        headers.extend(limit_headers(&refusal.state));
    }
    if !error.worth_retrying() {
        headers.insert(SHOULD_RETRY.clone(), HeaderValue::from_static("false"));
    }
    headers
}

/// `RateLimit-Policy` and `RateLimit`, on every answer of a model route.
pub fn limit_headers(state: &LimitState) -> HeaderMap {
    let values = [(&RATE_LIMIT_POLICY, state.policy_header()), (&RATE_LIMIT, state.state_header())];
    values
        .into_iter()
        .filter_map(|(name, value)| Some((name.clone(), HeaderValue::from_str(&value?).ok()?)))
        .collect()
}

/// The same, and what OpenAI's clients look for, on every answer of `/v1`.
pub fn openai_limit_headers(state: &LimitState) -> HeaderMap {
    let more = state.openai_headers().into_iter();
    let more = more.filter_map(|(name, value)| {
        Some((HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?))
    });
    limit_headers(state).into_iter().filter_map(|(name, value)| Some((name?, value))).chain(more).collect()
}
