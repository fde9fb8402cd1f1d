//! `POST /api/admin/providers/keys`, `PATCH` and `DELETE …/keys/{id}`. No answer holds a secret.

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::SettingsCaller;
use super::respond::{ApiError, ApiResult, ErrorBody};
use super::{Json, Path};
use crate::model::Error;
use crate::providers::admin::NewKey;
use crate::services::Services;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProviderKey {
    platform: String,
    /// Tells the platform's keys apart.
    label: String,
    /// The provider's key. It is stored sealed and never told again.
    secret: String,
    /// True where it is left out.
    enabled: Option<bool>,
}

#[derive(Serialize, ToSchema)]
pub struct ProviderKeyId {
    pub id: String,
}

/// At least one of them.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderKeyChange {
    enabled: Option<bool>,
    /// Takes the place of the one that is stored.
    secret: Option<String>,
}

#[utoipa::path(
    post, path = "/api/admin/providers/keys", tag = "Admin",
    responses(
        (status = 201, body = ProviderKeyId), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "the platform has a key of this label"),
        (status = 422, body = ErrorBody),
    )
)]
pub async fn add(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    key: Result<Json<NewProviderKey>, ApiError>,
) -> ApiResult<(StatusCode, axum::Json<ProviderKeyId>)> {
    caller.require_admin()?;
    let Json(key) = key?;
    let new = NewKey {
        platform: &key.platform,
        label: &key.label,
        secret: &key.secret,
        enabled: key.enabled.unwrap_or(true),
    };
    let (id, _) = services.pool.add_key(&caller.actor(), new).await?;
    Ok((StatusCode::CREATED, axum::Json(ProviderKeyId { id })))
}

#[utoipa::path(
    patch, path = "/api/admin/providers/keys/{id}", tag = "Admin", params(("id" = String, Path)),
    responses(
        (status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody),
    )
)]
pub async fn change(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Path(id): Path<String>,
    change: Result<Json<ProviderKeyChange>, ApiError>,
) -> ApiResult<StatusCode> {
    caller.require_admin()?;
    let Json(change) = change?;
    if change.enabled.is_none() && change.secret.is_none() {
        return Err(Error::Invalid("send enabled, secret or both".into()).into());
    }
    let actor = caller.actor();
    if let Some(secret) = &change.secret {
        services.pool.rotate_key(&actor, &id, secret).await?;
    }
    if let Some(enabled) = change.enabled {
        services.pool.enable_key(&actor, &id, enabled).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(
    delete, path = "/api/admin/providers/keys/{id}", tag = "Admin", params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub async fn remove(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Path(id): Path<String>,
) -> ApiResult<StatusCode> {
    caller.require_admin()?;
    services.pool.remove_key(&caller.actor(), &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
