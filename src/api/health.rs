//! `GET /healthz` and `GET /readyz`: is the process up, does the database answer.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::respond::{ApiResult, ErrorBody};
use crate::services::Services;

#[derive(Serialize, ToSchema)]
pub struct Health {
    #[schema(example = "ok")]
    status: &'static str,
}

#[utoipa::path(get, path = "/healthz", tag = "Operations", responses((status = 200, body = Health)))]
pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

#[utoipa::path(
    get, path = "/readyz", tag = "Operations",
    responses((status = 200, body = Health), (status = 503, body = ErrorBody, description = "the database does not answer"))
)]
pub async fn readyz(State(services): State<Services>) -> ApiResult<Json<Health>> {
    services.store.ping().await?;
    Ok(Json(Health { status: "ok" }))
}
