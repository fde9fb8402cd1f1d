//! `GET /api/sources`: the sources that the caller may see.

use axum::Json;
use axum::extract::State;

use super::Query;
use super::auth::Signed;
use super::respond::{ApiResult, ErrorBody};
use crate::directory::Page;
use crate::model::dashboard::SourceRow;
use crate::services::Services;

#[utoipa::path(
    get, path = "/api/sources", tag = "Directory", params(Page),
    responses((status = 200, body = Vec<SourceRow>), (status = 401, body = ErrorBody))
)]
pub async fn handler(
    State(services): State<Services>,
    Signed(caller): Signed,
    Query(page): Query<Page>,
) -> ApiResult<Json<Vec<SourceRow>>> {
    Ok(Json(services.directory.sources_of(caller.workspaces().as_deref(), &page).await?))
}
