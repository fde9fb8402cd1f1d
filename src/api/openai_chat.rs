//! `POST /v1/chat/completions`: OpenAI's wire format, held to the same limits. What Tollkeeper need not
//! understand passes through byte for byte, both ways.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::body::{Body, Bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, header};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio_stream::wrappers::ReceiverStream;

use super::auth::KeyOnly;
use super::extract::{parse, read_json_body};
use super::model_request::{whose, with_openai_limits, with_standing};
use super::openai_models::no_such_model;
use super::respond::{OpenAiError, openai_body};
use crate::chat::TYPICAL_OUTPUT;
use crate::limits::{Admission, Pieces, Sink, Who};
use crate::model::{Error, Route};
use crate::providers::estimate::estimate_call;
use crate::providers::{Answer, ChatRequest, Event, Pool, json};
use crate::services::Services;

/// The largest body, in bytes: images come in it.
const BODY_MAX: usize = 10 << 20;
const DONE: &[u8] = b"data: [DONE]\n\n";

/// The members that Tollkeeper has to understand; the rest goes to the provider as it came.
#[derive(Deserialize)]
struct Known {
    model: String,
    /// Only that there is a list with something in it.
    messages: Vec<IgnoredAny>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "OpenAI",
    request_body(content = Object, description = "OpenAI's chat completion request; model is an alias, PLATFORM/MODEL or default"),
    responses(
        (status = 200, body = Object, description = "a chat.completion, or with stream: true its chunks as an event stream"),
        (status = 404, body = Object, description = "no such model"),
        (status = 429, body = Object, description = "rate_limit_exceeded or insufficient_quota"),
        (status = 502, body = Object, description = "the provider failed"),
        (status = 503, body = Object, description = "no provider has room"),
    )
)]
pub async fn handler(
    State(services): State<Services>,
    KeyOnly(caller): KeyOnly,
    request: HttpRequest,
) -> Result<Response, OpenAiError> {
    let workspace = caller.selected_workspace()?;
    let who = whose(&caller, &workspace, Error::not_signed_in)?;
    let answer = complete(&services, who.clone(), request).await;
    Ok(with_standing(&services.limiter, &who, answer).await)
}

async fn complete(services: &Services, who: Who, request: HttpRequest) -> Result<Response, OpenAiError> {
    let body = read_json_body(request, BODY_MAX).await?;
    let known: Known = parse(&body).map_err(OpenAiError::in_body)?;
    if known.messages.is_empty() {
        let error = Error::Invalid("messages is empty; send at least one message".into());
        return Err(OpenAiError::about("messages", error));
    }
    let stream = known.stream.unwrap_or(false);
    let request = ChatRequest::read(body, stream).map_err(|_| {
        Error::Malformed("the request body can't be read; send a JSON object in UTF-8".into())
    })?;
    if request.member("messages").is_none() {
        let error = Error::Invalid(
            "messages can't be read: it is nested too deeply, or holds a number out of range".into(),
        );
        return Err(OpenAiError::about("messages", error));
    }
    if !services.pool.knows(&known.model) {
        return Err(no_such_model(known.model));
    }

    let tokens = estimate_call(&request, TYPICAL_OUTPUT);
    let (pool, model) = (services.pool.clone(), known.model);
    if stream {
        let with_usage = known.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
        // There when the first piece is.
        let id = Arc::new(OnceLock::new());
        let at_the_call = id.clone();
        let outcome = services
            .limiter
            .run_in_pieces(who, Route::Openai, tokens, move |admission, sink| async move {
                pass_on(&pool, &admission, &model, request, with_usage, &sink, &at_the_call).await
            })
            .await?;
        return Ok(match outcome.result {
            Ok(pieces) => with_openai_limits(&outcome.state, (request_id(id.get()), event_stream(pieces))),
            Err(error) => with_openai_limits(&outcome.state, OpenAiError::from(error)),
        });
    }
    let outcome = services
        .limiter
        .run(who, Route::Openai, tokens, move |admission| async move {
            let reply = pool.call(&admission, &model, request).await?;
            match reply.answer {
                Answer::Whole { text, .. } => Ok((text, reply.request_id)),
                Answer::Stream(_) => Err(Error::Internal),
            }
        })
        .await?;
    Ok(match outcome.result {
        Ok((text, id)) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            with_openai_limits(&outcome.state, (request_id(id.as_ref()), json, text))
        }
        Err(error) => with_openai_limits(&outcome.state, OpenAiError::from(error)),
    })
}

/// The provider's own name for the call, which its support asks for.
fn request_id(id: Option<&HeaderValue>) -> HeaderMap {
    id.map(|id| (http::HeaderName::from_static("x-request-id"), id.clone())).into_iter().collect()
}

/// Passes the provider's chunks on as they are. Usage is always asked for; the chunk that reports
/// it is left out where the caller didn't ask.
async fn pass_on(
    pool: &Pool,
    admission: &Admission,
    model: &str,
    request: ChatRequest,
    with_usage: bool,
    sink: &Sink<Bytes>,
    request_id: &OnceLock<HeaderValue>,
) -> Result<Bytes, Error> {
    let reply = pool.call(admission, model, request).await?;
    let Answer::Stream(mut events) = reply.answer else { return Err(Error::Internal) };
    if let Some(id) = reply.request_id {
        request_id.get_or_init(|| id);
    }
    while let Some(event) = events.next().await {
        match event {
            Event::Piece(piece) if piece.only_usage && !with_usage => {}
            Event::Piece(piece) => {
                // Some report usage on chunks that also carry text: the text stays, the report goes.
                let data =
                    if with_usage { Cow::from(&piece.data) } else { json::without(&piece.data, "usage") };
                sink.send(Bytes::from(format!("data: {data}\n\n"))).await;
            }
            Event::End(_) => break,
            Event::Cut { error, .. } => return Err(Error::Provider(error)),
        }
    }
    Ok(Bytes::from_static(DONE))
}

fn event_stream(pieces: Pieces<Bytes>) -> Response {
    let all = futures::stream::iter([Ok(pieces.first)]).chain(ReceiverStream::new(pieces.rest));
    let bytes = all.map(|piece| {
        // An error amid a stream is told in its place, and no [DONE] follows.
        let told = |error: Error| Bytes::from(format!("data: {}\n\n", openai_body(&error)));
        Ok::<_, std::convert::Infallible>(piece.unwrap_or_else(told))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(bytes)).into_response()
}
