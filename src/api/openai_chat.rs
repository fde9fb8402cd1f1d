//! `POST /v1/chat/completions`: OpenAI's wire format, held to the same limits.

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
    /// Only that there is a list with something in it.
    messages: Vec<IgnoredAny>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "OpenAI",
    request_body(content = Object, description = "OpenAI's chat completion request; model is an alias, PLATFORM/MODEL or default"),
    responses(
        (status = 200, body = Object, description = "a chat.completion, or with stream: true its chunks as an event stream"),
        (status = 404, body = Object, description = "no such model"),
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
        if known.messages.is_empty() {
            let error = Error::Invalid("messages is empty; send at least one message".into());
            return Err(OpenAiError::about("messages", error));
        }
        let with_usage = known.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
        Ok(Call {
            model: known.model,
            operation: Operation::Chat,
            stream: known.stream.unwrap_or(false).then_some(Style::Chunks { with_usage }),
            needs: "messages",
        })
    })
    .await
}
