//! `POST /api/generate`: a dashboard spec for a source, from a prompt.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Json;
use super::auth::Signed;
use super::model_request::{whose, with_limits, words};
use super::respond::{ApiError, ApiResult, ErrorBody};
use crate::chat::structured::Wanted;
use crate::chat::{TYPICAL_OUTPUT, schema};
use crate::identity::Caller;
use crate::limits::Outcome;
use crate::model::answers::Generated;
use crate::model::dashboard::Spec;
use crate::model::{Error, Route};
use crate::providers::estimate::estimate_call;
use crate::services::Services;

#[derive(Deserialize, ToSchema)]
pub struct Request {
    /// The source that the dashboard is to show. Its workspace is the one whose limits apply.
    source_id: String,
    prompt: String,
}

#[utoipa::path(
    post, path = "/api/generate", tag = "Models",
    responses(
        (status = 200, body = Generated),
        (status = 404, body = ErrorBody, description = "no such source in the caller's workspaces"),
        (status = 429, body = ErrorBody, description = "the rate or the budget is reached"),
        (status = 502, body = ErrorBody, description = "the provider failed, or its answer was not valid twice"),
        (status = 503, body = ErrorBody, description = "no provider has room"),
    )
)]
pub async fn handler(
    State(services): State<Services>,
    Signed(caller): Signed,
    Json(request): Json<Request>,
) -> ApiResult<Response> {
    let outcome = generate(&services, &caller, &request.source_id, &request.prompt).await?;
    Ok(match outcome.result {
        Ok(generated) => with_limits(&outcome.state, axum::Json(generated)),
        Err(error) => with_limits(&outcome.state, ApiError(error)),
    })
}

/// The whole way of the request, for this route and for the page that asks without script.
///
/// # Errors
/// When it is not admitted.
pub async fn generate(
    services: &Services,
    caller: &Caller,
    source_id: &str,
    prompt: &str,
) -> Result<Outcome<Generated>, Error> {
    words("prompt", prompt)?;
    let missing = || Error::no_such("source", source_id);
    let source = services.directory.source(source_id).await?.ok_or_else(missing)?;
    let who = whose(caller, &source.workspace, missing)?;

    let columns = source.columns.clone();
    let wanted = Wanted::<Spec> {
        name: "dashboard_spec",
        called: "dashboard spec",
        schema: schema::spec(&source.columns),
        messages: schema::spec_messages(&source.name, &source.columns, prompt),
        check: Box::new(move |spec| spec.check(&columns)),
    };
    let tokens = estimate_call(&wanted.request(), TYPICAL_OUTPUT);
    let pool = services.pool.clone();
    services
        .limiter
        .run(who, Route::Generate, tokens, |admission| async move {
            let got = wanted.ask(&pool, &admission).await?;
            Ok(Generated { spec: got.value, model: got.model, usage: got.usage })
        })
        .await
}
