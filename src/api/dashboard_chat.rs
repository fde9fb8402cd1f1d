//! `POST /api/dashboards/{id}/chat`: a turn of a dashboard's chat, whole or as an event stream.

use std::convert::Infallible;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::json;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::ToSchema;

use super::auth::Signed;
use super::model_request::{whose, with_limits, words};
use super::respond::{ApiError, ApiResult, ErrorBody};
use super::{Json, Path};
use crate::chat::TYPICAL_OUTPUT;
use crate::chat::turn::{Told, Turn};
use crate::identity::Caller;
use crate::limits::{Outcome, Pieces, Who};
use crate::model::answers::{Done, Said, Speaker};
use crate::model::{Error, Route};
use crate::providers::estimate::estimate_call;
use crate::services::Services;

/// Messages of one request; more would not fit a model either.
const MESSAGES_MAX: usize = 200;

#[derive(Deserialize, ToSchema)]
pub struct Request {
    /// The conversation so far, the user's newest message last.
    messages: Vec<Said>,
}

#[utoipa::path(
    post, path = "/api/dashboards/{id}/chat", tag = "Models",
    params(("id" = String, Path, description = "the dashboard; its workspace is the one whose limits apply")),
    responses(
        (status = 200, body = Done, description = "with Accept: text/event-stream the events delta {text}, tool {name}, \
            and at the end done (this object) or error {error}"),
        (status = 404, body = ErrorBody, description = "no such dashboard in the caller's workspaces"),
        (status = 429, body = ErrorBody, description = "the rate or the budget is reached"),
        (status = 502, body = ErrorBody, description = "the provider failed"),
        (status = 503, body = ErrorBody, description = "no provider has room"),
    )
)]
pub async fn handler(
    State(services): State<Services>,
    Signed(caller): Signed,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(request): Json<Request>,
) -> ApiResult<Response> {
    if wants_events(&headers) {
        let (who, tokens, turn) = prepare(&services, &caller, &id, request.messages).await?;
        let outcome = services
            .limiter
            .run_in_pieces(who, Route::Chat, tokens, |admission, sink| async move {
                turn.run(&admission, Some(&sink)).await.map(Told::Done)
            })
            .await?;
        return Ok(match outcome.result {
            Ok(pieces) => with_limits(&outcome.state, events(pieces)),
            Err(error) => with_limits(&outcome.state, ApiError(error)),
        });
    }
    let outcome = chat(&services, &caller, &id, request.messages).await?;
    Ok(match outcome.result {
        Ok(done) => with_limits(&outcome.state, axum::Json(done)),
        Err(error) => with_limits(&outcome.state, ApiError(error)),
    })
}

/// The whole way of a turn that answers whole, for this route and for the page that asks without script.
///
/// # Errors
/// When it is not admitted.
pub async fn chat(
    services: &Services,
    caller: &Caller,
    id: &str,
    messages: Vec<Said>,
) -> Result<Outcome<Done>, Error> {
    let (who, tokens, turn) = prepare(services, caller, id, messages).await?;
    services
        .limiter
        .run(who, Route::Chat, tokens, |admission| async move { turn.run(&admission, None).await })
        .await
}

/// Whose limits apply, what the first call is expected to take, and the turn.
async fn prepare(
    services: &Services,
    caller: &Caller,
    id: &str,
    messages: Vec<Said>,
) -> Result<(Who, u64, Turn), Error> {
    check(&messages)?;
    let missing = || Error::no_such("dashboard", id);
    let dashboard = services.directory.dashboard(id).await?.ok_or_else(missing)?;
    let who = whose(caller, &dashboard.workspace, missing)?;
    let source = services.directory.source(&dashboard.source).await?.ok_or(Error::Internal)?;
    let turn = Turn {
        pool: services.pool.clone(),
        directory: services.directory.clone(),
        actor: caller.actor(),
        said: messages,
        dashboard,
        source,
    };
    let tokens = estimate_call(&turn.first_request(), TYPICAL_OUTPUT);
    Ok((who, tokens, turn))
}

fn check(messages: &[Said]) -> Result<(), Error> {
    if messages.is_empty() || messages.len() > MESSAGES_MAX {
        return Err(Error::Invalid(format!("messages has to hold 1 to {MESSAGES_MAX} messages")));
    }
    match messages.last() {
        Some(Said { role: Speaker::User, content }) => words("the last of messages", content),
        _ => Err(Error::Invalid("messages has to end with one of the role user".into())),
    }
}

/// Whether the caller asks for an event stream.
fn wants_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
        })
}

fn events(pieces: Pieces<Told>) -> Response {
    let rest = ReceiverStream::new(pieces.rest);
    let all = futures::stream::iter([Ok(pieces.first)]).chain(rest);
    let events = all.map(|told| Ok::<_, Infallible>(event(told)));
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn event(told: Result<Told, Error>) -> Event {
    let (name, data) = match told {
        Ok(Told::Delta(text)) => ("delta", json!({ "text": text })),
        Ok(Told::Tool(name)) => ("tool", json!({ "name": name })),
        Ok(Told::Done(done)) => ("done", json!(done)),
        Err(error) => ("error", json!({ "error": error.to_string() })),
    };
    Event::default().event(name).data(data.to_string())
}
