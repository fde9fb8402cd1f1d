//! `GET /api/dashboards` and `GET /api/dashboards/{id}`.

use axum::Json;
use axum::extract::State;

use super::auth::Signed;
use super::respond::{ApiResult, ErrorBody};
use super::{Path, Query};
use crate::directory::Page;
use crate::model::Error;
use crate::model::dashboard::DashboardRow;
use crate::services::Services;

#[utoipa::path(
    get, path = "/api/dashboards", tag = "Directory", params(Page),
    responses((status = 200, body = Vec<DashboardRow>), (status = 401, body = ErrorBody))
)]
pub async fn list(
    State(services): State<Services>,
    Signed(caller): Signed,
    Query(page): Query<Page>,
) -> ApiResult<Json<Vec<DashboardRow>>> {
    Ok(Json(services.directory.dashboards_of(caller.workspaces().as_deref(), &page).await?))
}

#[utoipa::path(
    get, path = "/api/dashboards/{id}", tag = "Directory",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = DashboardRow, description = "with its spec, once it has one"),
        (status = 404, body = ErrorBody, description = "no such dashboard in the caller's workspaces"),
    )
)]
pub async fn one(
    State(services): State<Services>,
    Signed(caller): Signed,
    Path(id): Path<String>,
) -> ApiResult<Json<DashboardRow>> {
    let missing = || Error::no_such("dashboard", &id);
    let dashboard = services.directory.dashboard(&id).await?.ok_or_else(missing)?;
    if !caller.belongs_to(&dashboard.workspace) {
        return Err(missing().into());
    }
    Ok(Json(dashboard))
}
