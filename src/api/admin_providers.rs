//! `GET /api/admin/providers`: every candidate with its windows, as they stand.

use axum::Json;
use axum::extract::State;

use super::auth::SettingsCaller;
use super::respond::{ApiResult, ErrorBody};
use crate::providers::ProviderRow;
use crate::services::Services;

#[utoipa::path(
    get, path = "/api/admin/providers", tag = "Admin",
    responses((status = 200, body = Vec<ProviderRow>), (status = 403, body = ErrorBody))
)]
pub async fn handler(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
) -> ApiResult<Json<Vec<ProviderRow>>> {
    caller.require_admin()?;
    Ok(Json(services.pool.status()))
}
