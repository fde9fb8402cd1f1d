//! `POST /api/admin/providers/clear-cooldown` and `POST /api/admin/providers/test`: of one model under one key.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Json;
use super::auth::SettingsCaller;
use super::respond::{ApiError, ApiResult, ErrorBody};
use crate::model::providers::Tested;
use crate::providers::CandidateId;
use crate::services::Services;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    platform: String,
    model: String,
    key_id: String,
}

impl Candidate {
    fn id(&self) -> CandidateId {
        CandidateId::new(&self.platform, &self.model, &self.key_id)
    }
}

#[derive(Serialize, ToSchema)]
pub struct Cleared {
    /// False where there was no cooldown.
    pub cleared: bool,
}

#[utoipa::path(
    post, path = "/api/admin/providers/clear-cooldown", tag = "Admin",
    description = "Ends the cooldown of a model under a key, and that of the key with all its models.",
    responses((status = 200, body = Cleared), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub async fn clear_cooldown(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    candidate: Result<Json<Candidate>, ApiError>,
) -> ApiResult<axum::Json<Cleared>> {
    caller.require_admin()?;
    let Json(candidate) = candidate?;
    let done = services.pool.clear_cooldown(&caller.actor(), &candidate.id()).await?;
    Ok(axum::Json(Cleared { cleared: done.is_some() }))
}

#[utoipa::path(
    post, path = "/api/admin/providers/test", tag = "Admin",
    description = "Makes one tiny call to this very key and model. It counts in their windows.",
    responses(
        (status = 200, body = Tested, description = "what came of it, also where the provider failed"),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody, description = "the windows have no room for the call"),
    )
)]
pub async fn test(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    candidate: Result<Json<Candidate>, ApiError>,
) -> ApiResult<axum::Json<Tested>> {
    caller.require_admin()?;
    let Json(candidate) = candidate?;
    Ok(axum::Json(services.pool.test_key(&caller.actor(), &candidate.id()).await?))
}
