//! `POST /api/sources/generate`: a source's definition, drafted from a description.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Json;
use super::auth::Signed;
use super::model_request::{whose, with_limits, words};
use super::respond::{ApiError, ApiResult, ErrorBody};
use crate::chat::structured::Wanted;
use crate::chat::{TYPICAL_OUTPUT, schema};
use crate::model::dashboard::Draft;
use crate::model::{Error, Route, Usage};
use crate::providers::estimate::estimate_call;
use crate::services::Services;

#[derive(Deserialize, ToSchema)]
pub struct Request {
    /// What the source holds, in words.
    description: String,
}

#[derive(Serialize, ToSchema)]
pub struct Answer {
    #[schema(value_type = Object)]
    draft: Draft,
    /// The upstream's id of the model.
    model: String,
    #[schema(value_type = Object)]
    usage: Usage,
}

#[utoipa::path(
    post, path = "/api/sources/generate", tag = "Models",
    responses(
        (status = 200, body = Answer),
        (status = 422, body = ErrorBody, description = "no description, or no workspace is selected"),
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
    words("description", &request.description)?;
    let workspace = caller.selected_workspace()?;
    let who = whose(&caller, &workspace, || Error::no_such("workspace", workspace.as_str()))?;

    let wanted = Wanted::<Draft> {
        name: "source_draft",
        called: "source definition",
        schema: schema::draft(),
        messages: schema::draft_messages(&request.description),
        check: Box::new(Draft::check),
    };
    let tokens = estimate_call(&wanted.request(), TYPICAL_OUTPUT);
    let pool = services.pool.clone();
    let outcome = services
        .limiter
        .run(who, Route::SourceDraft, tokens, |admission| async move { wanted.ask(&pool, &admission).await })
        .await?;
    Ok(match outcome.result {
        Ok(got) => with_limits(
            &outcome.state,
            axum::Json(Answer { draft: got.value, model: got.model, usage: got.usage }),
        ),
        Err(error) => with_limits(&outcome.state, ApiError(error)),
    })
}
