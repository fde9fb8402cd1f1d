//! `GET /healthz` and `GET /readyz`: is the process up, does the database answer, where are the limits kept.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::respond::{ApiResult, ErrorBody};
use crate::model::Mode;
use crate::services::Services;

#[derive(Serialize, ToSchema)]
pub struct Health {
    #[schema(example = "ok")]
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub struct Readiness {
    #[schema(example = "ok")]
    status: &'static str,
    limits: LimitsKept,
}

/// Where the limits are kept.
#[derive(Serialize, ToSchema)]
pub struct LimitsKept {
    /// `single`, `redis`, `redis-away` or `per-instance`.
    #[schema(example = "redis")]
    mode: &'static str,
    /// The server processes that share the database.
    #[schema(example = 3)]
    replicas: u32,
    #[schema(example = "limits shared through Redis · 3 replicas")]
    sentence: String,
}

impl From<Mode> for LimitsKept {
    fn from(mode: Mode) -> Self {
        Self { mode: mode.kept.as_str(), replicas: mode.replicas, sentence: mode.sentence() }
    }
}

#[utoipa::path(get, path = "/healthz", tag = "Operations", responses((status = 200, body = Health)))]
pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

#[utoipa::path(
    get, path = "/readyz", tag = "Operations",
    responses((status = 200, body = Readiness), (status = 503, body = ErrorBody, description = "the database does not answer"))
)]
pub async fn readyz(State(services): State<Services>) -> ApiResult<Json<Readiness>> {
    services.store.ping().await?;
    Ok(Json(Readiness { status: "ok", limits: services.modes.now().into() }))
}
