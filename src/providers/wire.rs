//! Speaks to a provider in OpenAI's wire format: one request, one answer or one failure.
//!
//! Which provider is asked, and what a failure means for the next call, is the pool's to decide.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, header};
use tokio::time::{Instant, timeout_at};

use super::headers::LimitHeaders;
use super::reading::{self, Body};
use super::upstream::{Tally, UpstreamAnswer, UpstreamBody};
use super::{Failure, ModelRequest, estimate, fault};
use crate::clock::SharedClock;

/// Where a provider is spoken to, and with which key.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The URL before `/chat/completions` and the like, as a rule ending in `/v1`.
    pub base_url: String,
    pub key: Option<Secret>,
}

/// A provider's key. It shows itself to nobody but the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How long a provider may keep us waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the request to the answer's head, and for streams to the first piece.
    pub first_byte: Duration,
    /// Between two parts of an answer. A stream's comments don't count as parts.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { first_byte: Duration::from_mins(1), idle: Duration::from_mins(1) }
    }
}

/// What of an error's body is read, in bytes.
const ERROR_BODY_MAX: usize = 1 << 20;
/// A host that doesn't take the connection by then won't.
const CONNECT: Duration = Duration::from_secs(10);

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct WireClient {
    http: reqwest::Client,
    clock: SharedClock,
    timeouts: Timeouts,
}

impl WireClient {
    /// # Errors
    /// The TLS library can't be set up: a sentence for the operator.
    pub fn new(clock: SharedClock, timeouts: Timeouts) -> Result<Self, String> {
        let builder = || {
            reqwest::Client::builder()
                .user_agent(concat!("tollkeeper/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT.min(timeouts.first_byte))
        };
        let http = builder().build().or_else(|_| {
            // A bare machine, fit for the demo and for upstreams beside it.
            tracing::warn!(
                "this machine has no certificates of authorities; providers can't be asked over https"
            );
            builder().tls_certs_only([]).build()
        });
        let http = http.map_err(|error| format!("the HTTP client can't be set up: {error}"))?;
        Ok(Self { http, clock, timeouts })
    }

    /// Makes one call. A stream is answered with once its first piece is there: a chunk that says
    /// something or finishes, not one that only names the role.
    ///
    /// # Errors
    /// Whatever went wrong before that.
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        model: &str,
        request: &ModelRequest,
    ) -> Result<UpstreamAnswer, Failure> {
        let Timeouts { first_byte, idle } = self.timeouts;
        let deadline = Instant::now() + first_byte;
        let key = endpoint.key.as_ref().map(Secret::expose);
        let outgoing = self.outgoing(endpoint, model, request)?;
        let response = timeout_at(deadline, outgoing.send()).await.map_err(|_| Failure::Timeout)?;
        let response = response.map_err(unreachable)?;

        let (status, headers) = (response.status(), response.headers().clone());
        let mut body: Body = Box::pin(response.bytes_stream().map(|bytes| bytes.map_err(|_| ())));
        if request.operation().is_missing(status.as_u16()) {
            return Err(Failure::NotOffered);
        }
        if status.is_client_error() || status.is_server_error() {
            let said = reading::collect(&mut body, Bytes::new(), idle.min(first_byte), ERROR_BODY_MAX).await;
            return Err(fault::of_status(status, &headers, &said.unwrap_or_default(), key, self.clock.now()));
        }
        if !status.is_success() {
            return Err(Failure::Garbled("a redirection"));
        }

        let limits = LimitHeaders::read(&headers, self.clock.now());
        let operation = request.operation();
        let tally = Tally::new(estimate::input(request));
        // What it is shows by its first byte, not by its content type: gateways get that wrong. And some
        // stream, or don't, whatever they were asked for.
        // A whole answer may be long in coming, as long as the provider shows that it is there.
        let patience = || if request.stream() { deadline } else { Instant::now() + idle };
        let answer = match reading::first_byte(&mut body, patience).await? {
            (_, b'<') => return Err(Failure::Garbled("a page of HTML")),
            (begun, b'{' | b'[') => {
                let (completion, text) = reading::whole(&mut body, begun, idle).await?;
                operation.read_whole(&completion, &tally, key)?;
                if request.stream() {
                    UpstreamBody::Stream(reading::events_of_whole(operation, &completion, &tally), tally)
                } else {
                    UpstreamBody::Whole { completion, text, step: tally.step() }
                }
            }
            (begun, _) => {
                let events =
                    reading::events_of_stream(operation, body, begun, patience(), idle, tally.clone(), key)
                        .await?;
                if request.stream() {
                    UpstreamBody::Stream(events, tally)
                } else {
                    let (completion, step) = reading::whole_of_events(operation, events).await?;
                    UpstreamBody::Whole { text: completion.to_string().into(), completion, step }
                }
            }
        };
        Ok(UpstreamAnswer { limits, request_id: headers.get("x-request-id").cloned(), body: answer })
    }

    fn outgoing(
        &self,
        endpoint: &Endpoint,
        model: &str,
        request: &ModelRequest,
    ) -> Result<reqwest::RequestBuilder, Failure> {
        let url = format!("{}{}", endpoint.base_url.trim_end_matches('/'), request.operation().path());
        let accept = if request.stream() { "text/event-stream" } else { "application/json" };
        let mut outgoing = self
            .http
            .post(url)
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(header::ACCEPT, HeaderValue::from_static(accept))
            .body(request.outgoing(model));
        if let Some(key) = &endpoint.key {
            // A key that no header can carry is as good as one that the provider refuses.
            let mut value =
                HeaderValue::try_from(format!("Bearer {}", key.expose())).map_err(|_| Failure::Status {
                    status: 401,
                    retry_after_ms: None,
                    reset_ms: None,
                    message: None,
                    code: None,
                    param: None,
                })?;
            value.set_sensitive(true);
            outgoing = outgoing.header(header::AUTHORIZATION, value);
        }
        Ok(outgoing)
    }
}

fn unreachable(error: reqwest::Error) -> Failure {
    let failure = if error.is_timeout() { Failure::Timeout } else { Failure::Connection };
    tracing::debug!(error = ?error.without_url(), "a provider can't be reached");
    failure
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
