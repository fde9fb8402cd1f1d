//! `POST /v1/chat/completions`: OpenAI's wire format, held to the same limits.

use axum::body::{Body, Bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::header;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_stream::wrappers::ReceiverStream;

use super::auth::KeyOnly;
use super::extract::{parse, read_json_body};
use super::model_request::{whose, with_limits};
use super::respond::{OpenAiError, openai_body};
use crate::chat::TYPICAL_OUTPUT;
use crate::limits::{Admission, Pieces, Sink};
use crate::model::{Error, Route};
use crate::providers::estimate::estimate_call;
use crate::providers::{Answer, CallError, ChatRequest, Event, Pool};
use crate::services::Services;

const DONE: &[u8] = b"data: [DONE]\n\n";

/// The members that Tollkeeper has to understand; the rest goes to the provider as it came.
#[derive(Deserialize)]
struct Known {
    model: String,
    /// Only that there is a list with something in it.
    messages: Vec<Value>,
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
    let body = read_json_body(request, &services).await?;
    let known: Known = parse(&body)?;
    if known.messages.is_empty() {
        return Err(Error::Invalid("messages is empty; send at least one message".into()).into());
    }
    let fields: Map<String, Value> = parse(&body)?;
    if !services.pool.knows(&known.model) {
        return Err(CallError::UnknownModel { asked: known.model }.into());
    }

    let request = ChatRequest { body: fields, stream: known.stream.unwrap_or(false) };
    let tokens = estimate_call(&request, TYPICAL_OUTPUT);
    let (pool, model) = (services.pool.clone(), known.model);
    if request.stream {
        let with_usage = known.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
        let outcome = services
            .limiter
            .run_in_pieces(who, Route::Openai, tokens, move |admission, sink| async move {
                stream(&pool, &admission, &model, request, with_usage, &sink).await
            })
            .await?;
        return Ok(match outcome.result {
            Ok(pieces) => with_limits(&outcome.state, event_stream(pieces)),
            Err(error) => with_limits(&outcome.state, OpenAiError(error)),
        });
    }
    let outcome = services
        .limiter
        .run(who, Route::Openai, tokens, move |admission| async move {
            match pool.call(&admission, &model, request).await?.answer {
                Answer::Whole { completion, .. } => Ok(completion),
                Answer::Stream(_) => Err(Error::Internal),
            }
        })
        .await?;
    Ok(match outcome.result {
        Ok(completion) => with_limits(&outcome.state, axum::Json(completion)),
        Err(error) => with_limits(&outcome.state, OpenAiError(error)),
    })
}

/// Passes the provider's chunks on as they are. Usage is always asked for; the chunk that reports
/// it is left out where the caller didn't ask.
async fn stream(
    pool: &Pool,
    admission: &Admission,
    model: &str,
    request: ChatRequest,
    with_usage: bool,
    sink: &Sink<Bytes>,
) -> Result<Bytes, Error> {
    let Answer::Stream(mut events) = pool.call(admission, model, request).await?.answer else {
        return Err(Error::Internal);
    };
    while let Some(event) = events.next().await {
        match event {
            Event::Piece(piece) if piece.only_usage && !with_usage => {}
            Event::Piece(piece) => {
                let data = if with_usage { piece.data } else { without_usage(piece.data) };
                sink.send(Bytes::from(format!("data: {data}\n\n"))).await;
            }
            Event::End(_) => break,
            Event::Cut { error, .. } => return Err(Error::Provider(error)),
        }
    }
    Ok(Bytes::from_static(DONE))
}

/// Some providers report usage on chunks that also carry text: the text stays, the report goes.
fn without_usage(data: String) -> String {
    if !data.contains("\"usage\"") {
        return data;
    }
    match serde_json::from_str::<Map<String, Value>>(&data) {
        Ok(mut chunk) => {
            chunk.shift_remove("usage");
            Value::Object(chunk).to_string()
        }
        Err(_) => data,
    }
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
