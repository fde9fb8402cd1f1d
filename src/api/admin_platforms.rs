//! `POST /api/admin/providers/platforms` and `DELETE …/platforms/{id}`.

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::auth::SettingsCaller;
use super::respond::{ApiError, ApiResult, ErrorBody};
use super::{Json, Path};
use crate::services::Services;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlatform {
    id: String,
    /// OpenAI-compatible, as in `https://openrouter.ai/api/v1`.
    base_url: String,
}

#[utoipa::path(
    post, path = "/api/admin/providers/platforms", tag = "Admin",
    responses(
        (status = 201), (status = 403, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "there is one of this id"), (status = 422, body = ErrorBody),
    )
)]
pub async fn add(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    platform: Result<Json<NewPlatform>, ApiError>,
) -> ApiResult<StatusCode> {
    caller.require_admin()?;
    let Json(new) = platform?;
    services.pool.add_platform(&caller.actor(), &new.id, &new.base_url).await?;
    Ok(StatusCode::CREATED)
}

#[utoipa::path(
    delete, path = "/api/admin/providers/platforms/{id}", tag = "Admin", params(("id" = String, Path)),
    description = "Its keys and models go with it.",
    responses((status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub async fn remove(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Path(id): Path<String>,
) -> ApiResult<StatusCode> {
    caller.require_admin()?;
    services.pool.remove_platform(&caller.actor(), &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
