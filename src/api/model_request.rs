//! What the model routes share: whose request it is, and the headers that every answer has.

use axum::response::{IntoResponse, Response};

use super::respond::limit_headers;
use crate::identity::Caller;
use crate::limits::Who;
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

/// What a person asks, in words: not empty. Its length is bounded by the body's.
pub fn words(field: &str, text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::Invalid(format!("{field} is empty; say what you want")));
    }
    Ok(())
}
