//! `GET /v1/models` and `GET /v1/models/{model}`: what the caller can ask for, in OpenAI's shapes.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::auth::KeyOnly;
use super::model_request::{whose, with_standing};
use super::respond::OpenAiError;
use crate::identity::Caller;
use crate::model::Error;
use crate::providers::{CallError, ModelRow};
use crate::services::Services;

#[utoipa::path(
    get, path = "/v1/models", tag = "OpenAI",
    responses((status = 200, body = Object, description = "{object: \"list\", data: [{id, object: \"model\", created, owned_by}]}"))
)]
pub async fn list(
    State(services): State<Services>,
    KeyOnly(caller): KeyOnly,
) -> Result<Response, OpenAiError> {
    let data: Vec<Value> = services.pool.models().iter().map(described).collect();
    with_limits(&services, &caller, Ok(json!({ "object": "list", "data": data }))).await
}

#[utoipa::path(
    get, path = "/v1/models/{*model}", tag = "OpenAI",
    params(("model" = String, Path, description = "an alias or PLATFORM/MODEL, slashes and all")),
    responses(
        (status = 200, body = Object, description = "{id, object: \"model\", created, owned_by}"),
        (status = 404, body = Object, description = "no such model"),
    )
)]
pub async fn one(
    State(services): State<Services>,
    KeyOnly(caller): KeyOnly,
    asked: Result<Path<String>, PathRejection>,
) -> Result<Response, OpenAiError> {
    let Path(asked) = asked.map_err(|_| {
        Error::Malformed("the address can't be read; escape what is no plain text in it".into())
    })?;
    let models = services.pool.models();
    let found = models.iter().find(|model| model.id == asked).map(described);
    with_limits(&services, &caller, found.ok_or_else(|| no_such_model(asked))).await
}

/// 404 as OpenAI's clients know it.
pub(super) fn no_such_model(asked: String) -> OpenAiError {
    OpenAiError::about("model", CallError::UnknownModel { asked }).code("model_not_found")
}

async fn with_limits(
    services: &Services,
    caller: &Caller,
    answer: Result<Value, OpenAiError>,
) -> Result<Response, OpenAiError> {
    let answer = answer.map(|body| Json(body).into_response());
    // A viewer may look, and has no limits to be told.
    match whose(caller, &caller.selected_workspace()?, Error::not_signed_in) {
        Ok(who) => Ok(with_standing(&services.limiter, &who, answer).await),
        Err(Error::Forbidden(_)) => answer,
        Err(error) => Err(error.into()),
    }
}

fn described(model: &ModelRow) -> Value {
    json!({ "id": model.id, "object": "model", "created": 0, "owned_by": model.owned_by })
}
