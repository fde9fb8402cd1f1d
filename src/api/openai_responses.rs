//! `POST /v1/responses`: for the models whose provider offers it. A response that the provider keeps can be
//! referred to by `previous_response_id` as long as the next call reaches the same provider.

use axum::extract::{Request as HttpRequest, State};
use axum::response::Response;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::auth::KeyOnly;
use super::extract::parse;
use super::openai_call::{self, Call, Style};
use super::respond::OpenAiError;
use crate::model::Error;
use crate::providers::Operation;
use crate::services::Services;

/// The members that Tollkeeper has to understand; the rest goes to the provider as it came.
#[derive(Deserialize)]
struct Known {
    model: String,
    /// Only that it is there: a text, or a list of items.
    #[expect(dead_code, reason = "read to be asked for")]
    input: IgnoredAny,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    background: Option<bool>,
}

#[utoipa::path(
    post, path = "/v1/responses", tag = "OpenAI",
    request_body(content = Object, description = "OpenAI's responses request; model is an alias, PLATFORM/MODEL or default"),
    responses(
        (status = 200, body = Object, description = "a response, or with stream: true its events"),
        (status = 404, body = Object, description = "no such model, or none of its providers offers responses"),
        (status = 429, body = Object, description = "rate_limit_exceeded or insufficient_quota"),
        (status = 502, body = Object, description = "the provider failed"),
        (status = 503, body = Object, description = "no provider has room"),
    )
)]
pub async fn handler(
    State(services): State<Services>,
    KeyOnly(caller): KeyOnly,
    request: HttpRequest,
) -> Result<Response, OpenAiError> {
    openai_call::answer(&services, &caller, request, |body| {
        let known: Known = parse(body).map_err(OpenAiError::in_body)?;
        if known.background == Some(true) {
            // What it uses would be known only when it is fetched, which is no call that is admitted.
            let error =
                "background is not offered, as its usage could not be counted; leave it out and stream";
            return Err(OpenAiError::about("background", Error::Invalid(error.into())));
        }
        Ok(Call {
            model: known.model,
            operation: Operation::Responses,
            stream: known.stream.unwrap_or(false).then_some(Style::Events),
            needs: "input",
        })
    })
    .await
}
