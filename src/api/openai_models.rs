//! `GET /v1/models`: what the caller can ask for, in OpenAI's list shape.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::auth::KeyOnly;
use super::respond::OpenAiError;
use crate::services::Services;

#[utoipa::path(
    get, path = "/v1/models", tag = "OpenAI",
    responses((status = 200, body = Object, description = "{object: \"list\", data: [{id, object: \"model\", created, owned_by}]}"))
)]
pub async fn handler(
    State(services): State<Services>,
    KeyOnly(_caller): KeyOnly,
) -> Result<Json<Value>, OpenAiError> {
    let data: Vec<Value> = services
        .pool
        .models()
        .into_iter()
        .map(|model| json!({ "id": model.id, "object": "model", "created": 0, "owned_by": model.owned_by }))
        .collect();
    Ok(Json(json!({ "object": "list", "data": data })))
}
