//! `POST`, `PATCH` and `DELETE /api/admin/providers/models`. A model's id may hold slashes, so it stands in the
//! body or the query rather than in the path.

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Deserializer};
use utoipa::{IntoParams, ToSchema};

use super::auth::SettingsCaller;
use super::respond::{ApiError, ApiResult, ErrorBody};
use super::{Json, Query};
use crate::model::Error;
use crate::model::providers::ModelSettings;
use crate::providers::admin::ModelChange;
use crate::services::Services;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProviderModel {
    platform: String,
    /// The provider's id of it.
    model: String,
    /// The model's id where it is left out.
    alias: Option<String>,
    rpm: Option<u64>,
    rpd: Option<u64>,
    tpm: Option<u64>,
    tpd: Option<u64>,
    /// 1 where it is left out.
    priority: Option<u64>,
}

/// What is left out stays as it is; a limit of `null` is unlimited.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::option_option, reason = "left out, null and a number say three things")]
pub struct ProviderModelChange {
    platform: String,
    model: String,
    alias: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    rpm: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    rpd: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    tpm: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    tpd: Option<Option<u64>>,
    priority: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Which {
    platform: String,
    model: String,
}

#[utoipa::path(
    post, path = "/api/admin/providers/models", tag = "Admin",
    responses(
        (status = 201), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "the platform has the model"), (status = 422, body = ErrorBody),
    )
)]
pub async fn add(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    model: Result<Json<NewProviderModel>, ApiError>,
) -> ApiResult<StatusCode> {
    caller.require_admin()?;
    let Json(new) = model?;
    let settings = ModelSettings {
        alias: new.alias.unwrap_or_else(|| new.model.clone()),
        rpm: new.rpm,
        rpd: new.rpd,
        tpm: new.tpm,
        tpd: new.tpd,
        priority: new.priority.unwrap_or(1),
    };
    services.pool.add_model(&caller.actor(), &new.platform, &new.model, settings).await?;
    Ok(StatusCode::CREATED)
}

#[utoipa::path(
    patch, path = "/api/admin/providers/models", tag = "Admin",
    responses(
        (status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody),
    )
)]
pub async fn change(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    change: Result<Json<ProviderModelChange>, ApiError>,
) -> ApiResult<StatusCode> {
    caller.require_admin()?;
    let Json(ProviderModelChange { platform, model, alias, rpm, rpd, tpm, tpd, priority }) = change?;
    let change = ModelChange { alias, rpm, rpd, tpm, tpd, priority };
    if change == ModelChange::default() {
        return Err(
            Error::Invalid("send what is to change: alias, rpm, rpd, tpm, tpd or priority".into()).into()
        );
    }
    services.pool.edit_model(&caller.actor(), &platform, &model, change).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(
    delete, path = "/api/admin/providers/models", tag = "Admin", params(Which),
    responses((status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub async fn remove(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    which: Result<Query<Which>, ApiError>,
) -> ApiResult<StatusCode> {
    caller.require_admin()?;
    let Query(which) = which?;
    services.pool.remove_model(&caller.actor(), &which.platform, &which.model).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Present, so `Some`, also where it is null.
#[expect(clippy::option_option, reason = "as in the field that it reads")]
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::<u64>::deserialize(from).map(Some)
}
