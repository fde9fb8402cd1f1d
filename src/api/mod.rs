//! HTTP: one file an endpoint, in the order request, response, handler, tests. What all of them share
//! is in [`extract`] (how input is read), [`auth`] (who is calling) and [`respond`] (how errors are told).

pub mod auth;
pub mod csrf;
pub mod extract;
pub mod respond;
#[cfg(test)]
pub(crate) mod testing;

mod admin_audit;
mod admin_candidates;
mod admin_platforms;
mod admin_provider_keys;
mod admin_provider_models;
mod admin_providers;
mod admin_usage;
mod admin_workspaces;
pub mod dashboard_chat;
mod dashboards;
pub mod generate;
mod health;
mod live;
mod login;
mod logout;
mod me;
mod metrics;
mod model_request;
mod openai_call;
mod openai_chat;
mod openai_embeddings;
mod openai_models;
mod openai_responses;
mod source_draft;
mod sources;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http::{HeaderValue, Uri, header};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::model::Error;
use crate::services::Services;

pub use extract::{Json, Path, Query};
pub use respond::{ApiError, ApiResult, OpenAiError};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tollkeeper",
        description = "A gateway in front of language models: workspaces, users and provider keys within their limits. \
            Sign in with POST /api/login for a session cookie, or send an API key as a bearer token."
    ),
    tags(
        (name = "session"), (name = "Models"), (name = "OpenAI"), (name = "Directory"), (name = "Admin"),
        (name = "Operations")
    )
)]
struct Description;

/// Every route of the contract.
pub fn router(services: &Services) -> Router {
    let api = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(login::handler))
        .routes(routes!(logout::handler))
        .routes(routes!(me::handler, me::select_workspace))
        .routes(routes!(generate::handler))
        .routes(routes!(source_draft::handler))
        .routes(routes!(dashboard_chat::handler))
        .routes(routes!(sources::handler))
        .routes(routes!(dashboards::list))
        .routes(routes!(dashboards::one))
        .routes(routes!(admin_workspaces::list))
        .routes(routes!(admin_workspaces::set_limits))
        .routes(routes!(admin_usage::handler))
        .routes(routes!(admin_providers::handler))
        .routes(routes!(admin_platforms::add))
        .routes(routes!(admin_platforms::remove))
        .routes(routes!(admin_provider_keys::add))
        .routes(routes!(admin_provider_keys::change, admin_provider_keys::remove))
        .routes(routes!(
            admin_provider_models::add,
            admin_provider_models::change,
            admin_provider_models::remove
        ))
        .routes(routes!(admin_candidates::clear_cooldown))
        .routes(routes!(admin_candidates::test))
        .routes(routes!(admin_audit::handler))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::handler));
    let openai = OpenApiRouter::new()
        .routes(routes!(openai_chat::handler))
        .routes(routes!(openai_embeddings::handler))
        .routes(routes!(openai_responses::handler))
        .routes(routes!(openai_models::list))
        .routes(routes!(openai_models::one))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            OpenAiError::from(Error::Internal).into_response()
        }));
    let (router, description) = api.merge(openai).split_for_parts();
    // OpenAPI has no sign for a parameter that takes slashes.
    let description = description.to_pretty_json().unwrap_or_default().replace("{*", "{");
    router
        .route(
            "/api/openapi.json",
            get(async || ([(header::CONTENT_TYPE, "application/json")], description).into_response()),
        )
        .route("/api/live/workspaces", get(live::workspaces))
        .route("/api/live/workspaces/{id}", get(live::workspace))
        .route("/api/live/providers", get(live::providers))
        .route("/api/live/audit", get(live::audit))
        .route("/api/live/limits/{id}", get(live::limits))
        .route("/api", any(not_found))
        .route("/api/{*rest}", any(not_found))
        .route("/v1", any(not_offered))
        .route("/v1/", any(not_offered))
        .route("/v1/{*rest}", any(not_offered))
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(services.clone())
}

/// What every answer passes through, the pages' too.
pub fn with_layers(router: Router, services: &Services) -> Router {
    let router = router.layer(axum::middleware::from_fn(csrf::refuse_other_origins));
    let mut router = services
        .identity
        .with_sessions(router)
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            ApiError(Error::Internal).into_response()
        }))
        .layer(header("x-content-type-options", "nosniff"))
        .layer(header("referrer-policy", "same-origin"));
    if services.config.production {
        router = router.layer(header("strict-transport-security", "max-age=63072000; includeSubDomains"));
    }
    router
}

fn header(name: &'static str, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(
        http::HeaderName::from_static(name),
        HeaderValue::from_static(value),
    )
}

async fn not_found(uri: Uri) -> Response {
    in_shape(
        &uri,
        Error::NotFound("there is no such route; see /api/openapi.json for those that exist".into()),
    )
}

/// Programs written for OpenAI ask for more than there is here.
async fn not_offered() -> Response {
    let error = "this route of OpenAI's API is not offered here; there are POST /v1/chat/completions, \
                 /v1/embeddings and /v1/responses, GET /v1/models and GET /v1/models/{model}";
    OpenAiError::from(Error::NotFound(error.into())).code("unknown_url").into_response()
}

async fn method_not_allowed(uri: Uri) -> Response {
    let error = "this route does not take that method; see /api/openapi.json for those it takes";
    in_shape(&uri, Error::MethodNotAllowed(error.into()))
}

fn in_shape(uri: &Uri, error: Error) -> Response {
    if uri.path().starts_with("/v1") {
        OpenAiError::from(error).into_response()
    } else {
        ApiError(error).into_response()
    }
}
