//! `POST /v1/embeddings`: for the models whose provider offers them.

use axum::extract::{Request as HttpRequest, State};
use axum::response::Response;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::auth::KeyOnly;
use super::extract::parse;
use super::openai_call::{self, Call};
use super::respond::OpenAiError;
use crate::providers::Operation;
use crate::services::Services;

/// The members that Tollkeeper has to understand; the rest goes to the provider as it came.
#[derive(Deserialize)]
struct Known {
    model: String,
    /// Only that it is there: a text, tokens, or a list of either.
    #[expect(dead_code, reason = "read to be asked for")]
    input: IgnoredAny,
}

#[utoipa::path(
    post, path = "/v1/embeddings", tag = "OpenAI",
    request_body(content = Object, description = "OpenAI's embeddings request; model is an alias, PLATFORM/MODEL or default"),
    responses(
        (status = 200, body = Object, description = "{object: \"list\", data: [{embedding}], usage}"),
        (status = 404, body = Object, description = "no such model, or none of its providers offers embeddings"),
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
        Ok(Call { model: known.model, operation: Operation::Embeddings, stream: None, needs: "input" })
    })
    .await
}
