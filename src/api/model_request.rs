//! What the model routes share: whose request it is, and the headers that every answer has.

use axum::response::{IntoResponse, Response};

use super::respond::{OpenAiError, limit_headers, openai_limit_headers};
use crate::identity::Caller;
use crate::limits::{Limiter, Who};
use crate::model::{Error, LimitState, WorkspaceId};

/// Whose limits a request in `workspace` is held to. `missing` is the error of a record that
/// doesn't exist: one in a workspace that the caller isn't in answers the same.
pub fn whose(
    caller: &Caller,
    workspace: &WorkspaceId,
    missing: impl FnOnce() -> Error,
) -> Result<Who, Error> {
    if !caller.belongs_to(workspace) {
        return Err(missing());
    }
    caller.may_call_models(workspace)?;
    Ok(Who { workspace: workspace.clone(), user: caller.user.clone() })
}

/// An answer, or an error after admission, with both limits told.
pub fn with_limits(state: &LimitState, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.headers_mut().extend(limit_headers(state));
    response
}

/// The same on `/v1`.
pub fn with_openai_limits(state: &LimitState, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.headers_mut().extend(openai_limit_headers(state));
    response
}

/// An answer of `/v1`; where it was not admitted and so doesn't tell the limits yet, with both told as they stand.
pub async fn with_standing(limiter: &Limiter, who: &Who, answer: Result<Response, OpenAiError>) -> Response {
    let answer = answer.into_response();
    if answer.headers().contains_key("ratelimit-policy") {
        return answer;
    }
    match limiter.peek(who).await {
        Ok(state) => with_openai_limits(&state, answer),
        // Its own error says what is to be said.
        Err(_) => answer,
    }
}

/// What a person asks, in words: not empty. Its length is bounded by the body's.
pub fn words(field: &str, text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::Invalid(format!("{field} is empty; say what you want")));
    }
    Ok(())
}
