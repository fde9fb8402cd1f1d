//! `GET /metrics`: Prometheus text format. In production for platform admins alone.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;

use super::auth::MaybeSession;
use super::respond::{ApiResult, ErrorBody};
use crate::model::Error;
use crate::services::Services;
use crate::telemetry;

#[utoipa::path(
    get, path = "/metrics", tag = "Operations",
    responses((status = 200, content_type = "text/plain"), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody))
)]
pub async fn handler(
    State(services): State<Services>,
    MaybeSession(caller): MaybeSession,
) -> ApiResult<Response> {
    if services.config.production {
        caller.ok_or_else(Error::not_signed_in)?.require_admin()?;
    }
    let text = telemetry::render(&services).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
