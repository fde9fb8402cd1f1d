//! What the calls of `/v1` share: the way of a request, and how its answer goes out. What Tollkeeper need not
//! understand passes through byte for byte, both ways.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::body::{Body, Bytes};
use axum::extract::Request as HttpRequest;
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, header};
use tokio_stream::wrappers::ReceiverStream;

use super::extract::read_json_body;
use super::model_request::{whose, with_openai_limits, with_standing};
use super::openai_models::no_such_model;
use super::respond::{OpenAiError, openai_body};
use crate::chat::TYPICAL_OUTPUT;
use crate::identity::Caller;
use crate::limits::{Admission, Pieces, Sink, Who};
use crate::model::{Error, Route};
use crate::providers::estimate::estimate_call;
use crate::providers::{Answer, Event, ModelRequest, Operation, Piece, Pool, json};
use crate::services::Services;

/// The largest body, in bytes: images come in it.
const BODY_MAX: usize = 10 << 20;

/// A call as its route has read it from the body.
pub(super) struct Call {
    /// What is asked for: an alias, `PLATFORM/MODEL` or `default`.
    pub model: String,
    pub operation: Operation,
    /// None: the answer comes whole.
    pub stream: Option<Style>,
    /// The member without which a provider has nothing to do.
    pub needs: &'static str,
}

/// How the pieces of a stream go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Chunks, and `[DONE]`. Usage is always asked for; its chunk is left out where the caller didn't ask.
    Chunks { with_usage: bool },
    /// Named events, of which the last is the response itself.
    Events,
}

/// Reads the body, runs the call under the caller's limits, and answers with both limits told.
pub(super) async fn answer(
    services: &Services,
    caller: &Caller,
    request: HttpRequest,
    read: impl FnOnce(&Bytes) -> Result<Call, OpenAiError>,
) -> Result<Response, OpenAiError> {
    let workspace = caller.selected_workspace()?;
    let who = whose(caller, &workspace, Error::not_signed_in)?;
    let answer = async {
        let body = read_json_body(request, BODY_MAX).await?;
        let call = read(&body)?;
        run(services, who.clone(), call, body).await
    };
    let answer = answer.await;
    Ok(with_standing(&services.limiter, &who, answer).await)
}

async fn run(services: &Services, who: Who, call: Call, body: Bytes) -> Result<Response, OpenAiError> {
    let Call { model, operation, stream, needs } = call;
    let request = ModelRequest::read(body, operation, stream.is_some()).map_err(|_| {
        Error::Malformed("the request body can't be read; send a JSON object in UTF-8".into())
    })?;
    if request.member(needs).is_none() {
        let error = format!("{needs} can't be read: it is nested too deeply, or holds a number out of range");
        return Err(OpenAiError::about(needs, Error::Invalid(error)));
    }
    if !services.pool.knows(&model) {
        return Err(no_such_model(model));
    }

    let tokens = estimate_call(&request, TYPICAL_OUTPUT);
    let pool = services.pool.clone();
    if let Some(style) = stream {
        // There when the first piece is.
        let id = Arc::new(OnceLock::new());
        let at_the_call = id.clone();
        let outcome = services
            .limiter
            .run_in_pieces(who, Route::Openai, tokens, move |admission, sink| async move {
                pass_on(&pool, &admission, &model, request, style, &sink, &at_the_call).await
            })
            .await?;
        return Ok(match outcome.result {
            Ok(pieces) => {
                with_openai_limits(&outcome.state, (request_id(id.get()), event_stream(pieces, style)))
            }
            Err(error) => with_openai_limits(&outcome.state, failed(error)),
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
        Err(error) => with_openai_limits(&outcome.state, failed(error)),
    })
}

/// After admission the one thing that can't be found is the model, or one that has the call.
fn failed(error: Error) -> OpenAiError {
    if matches!(error, Error::NotFound(_)) {
        return OpenAiError::about("model", error).code("model_not_found");
    }
    error.into()
}

/// The provider's own name for the call, which its support asks for.
fn request_id(id: Option<&HeaderValue>) -> HeaderMap {
    id.map(|id| (http::HeaderName::from_static("x-request-id"), id.clone())).into_iter().collect()
}

/// Passes the provider's pieces on as they are. The last is returned: it goes out once the usage is committed.
async fn pass_on(
    pool: &Pool,
    admission: &Admission,
    model: &str,
    request: ModelRequest,
    style: Style,
    sink: &Sink<Bytes>,
    request_id: &OnceLock<HeaderValue>,
) -> Result<Bytes, Error> {
    let reply = pool.call(admission, model, request).await?;
    let Answer::Stream(mut events) = reply.answer else { return Err(Error::Internal) };
    if let Some(id) = reply.request_id {
        request_id.get_or_init(|| id);
    }
    let mut last = Bytes::from_static(b"data: [DONE]\n\n");
    while let Some(event) = events.next().await {
        match event {
            Event::Piece(piece) => match style {
                Style::Events if piece.finish_reason.is_some() => last = style.bytes(&piece),
                Style::Chunks { with_usage: false } if piece.only_usage => {}
                style => sink.send(style.bytes(&piece)).await,
            },
            Event::End(_) => break,
            Event::Cut { error, .. } => return Err(Error::Provider(error)),
        }
    }
    Ok(last)
}

fn event_stream(pieces: Pieces<Bytes>, style: Style) -> Response {
    let all = futures::stream::iter([Ok(pieces.first)]).chain(ReceiverStream::new(pieces.rest));
    // An error amid a stream is told in its place, and no proper end follows.
    let bytes =
        all.map(move |piece| Ok::<_, std::convert::Infallible>(piece.unwrap_or_else(|e| style.error(&e))));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(bytes)).into_response()
}

impl Style {
    fn bytes(self, piece: &Piece) -> Bytes {
        match self {
            Style::Events => format!("event: {}\ndata: {}\n\n", piece.event, piece.data).into(),
            Style::Chunks { with_usage } => {
                // Some report usage on chunks that also carry text: the text stays, the report goes.
                let data =
                    if with_usage { Cow::from(&piece.data) } else { json::without(&piece.data, "usage") };
                format!("data: {data}\n\n").into()
            }
        }
    }

    fn error(self, error: &Error) -> Bytes {
        let mut body = openai_body(error);
        if self != Style::Events {
            return format!("data: {body}\n\n").into();
        }
        // OpenAI writes this event both ways, flat and with the object within.
        let flat = body["error"].clone();
        body["type"] = "error".into();
        for name in ["code", "message", "param"] {
            body[name] = flat.get(name).cloned().unwrap_or_default();
        }
        format!("event: error\ndata: {body}\n\n").into()
    }
}
