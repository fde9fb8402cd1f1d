//! `GET /api/admin/workspaces`, and `PUT /api/admin/workspaces/{id}/limits`.

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::auth::SettingsCaller;
use super::respond::{ApiResult, ErrorBody};
use super::{Json, Path};
use crate::limits::overrides;
use crate::model::limit::{BUDGET_MAX, LimitChange, RATE_MAX};
use crate::model::reports::WorkspaceRow;
use crate::model::{Error, Setting, WorkspaceId};
use crate::services::Services;

#[utoipa::path(
    get, path = "/api/admin/workspaces", tag = "Admin",
    responses((status = 200, body = Vec<WorkspaceRow>), (status = 403, body = ErrorBody))
)]
pub async fn list(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
) -> ApiResult<axum::Json<Vec<WorkspaceRow>>> {
    let scope = caller.settings_scope()?;
    Ok(axum::Json(services.reports.workspace_rows(&scope).await?))
}

/// Each field is a whole number from 0 (which disables the limit), `null` to inherit the
/// environment's value, or absent to leave the limit as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Up to 2,147,483,647.
    #[serde(default, deserialize_with = "rate")]
    #[schema(value_type = Option<u64>)]
    rate_per_minute: Option<Setting>,
    /// Up to 9,007,199,254,740,991.
    #[serde(default, deserialize_with = "budget")]
    #[schema(value_type = Option<u64>)]
    daily_token_budget: Option<Setting>,
}

#[utoipa::path(
    put, path = "/api/admin/workspaces/{id}/limits", tag = "Admin",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = WorkspaceRow, description = "the row as it is now; the next model request obeys it"),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody, description = "anything but whole numbers in bounds and null, or an empty object"),
    )
)]
pub async fn set_limits(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Path(id): Path<String>,
    limits: Result<Json<Limits>, super::ApiError>,
) -> ApiResult<axum::Json<WorkspaceRow>> {
    caller.require_admin()?;
    let Json(limits) = limits?;
    let change = LimitChange { rate: limits.rate_per_minute, budget: limits.daily_token_budget };
    if change.is_empty() {
        return Err(Error::Invalid("send rate_per_minute, daily_token_budget or both".into()).into());
    }
    let workspace = WorkspaceId::from(id);
    overrides::change(&services.store, services.clock.now(), &caller.actor(), &workspace, change).await?;
    services.ledger.announce();
    Ok(axum::Json(services.reports.workspace_row(&workspace).await?))
}

fn rate<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Setting>, D::Error> {
    setting(from, RATE_MAX)
}

fn budget<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Setting>, D::Error> {
    setting(from, BUDGET_MAX)
}

/// Present, so `Some`; whether it is null or a number is the setting's own matter.
fn setting<'de, D: serde::Deserializer<'de>>(from: D, max: u64) -> Result<Option<Setting>, D::Error> {
    let expected = || serde::de::Error::custom(format!("expected null or a whole number from 0 to {max}"));
    let number = Option::<u64>::deserialize(from).map_err(|_| expected())?;
    match number {
        None => Ok(Some(Setting::Inherit)),
        Some(0) => Ok(Some(Setting::Disabled)),
        Some(n) if n <= max => Ok(Some(Setting::Value(n))),
        Some(_) => Err(expected()),
    }
}
