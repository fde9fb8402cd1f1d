//! What the pool asks of the side that speaks to providers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderValue;
use serde_json::Value;

use super::{Events, Failure, ModelRequest};
use crate::ledger::StepUsage;

/// Speaks to one provider, once: no choice among several, no second try.
#[async_trait]
pub trait Upstream: Send + Sync + 'static {
    /// Makes the call. A stream is answered when its first piece is there.
    async fn send(&self, target: &Target, model: &str, request: &ModelRequest) -> Result<Sent, Failure>;

    /// Tokens that the call may come to: its input, and as much output as it allows or else `typical_output`
    /// (once, or once for each answer that it asks for).
    fn estimate(&self, request: &ModelRequest, typical_output: u64) -> u64;
}

/// Where a call goes.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// An OpenAI-compatible endpoint.
    Provider {
        /// Ends in `/v1` or the like.
        base_url: Arc<str>,
        /// The provider key in plain.
        key: Arc<str>,
    },
    /// The built-in demo model.
    Demo,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Provider { base_url, .. } => write!(f, "Provider({base_url})"),
            Target::Demo => f.write_str("Demo"),
        }
    }
}

/// An answer, or its beginning.
pub struct Sent {
    pub stated: StatedLimits,
    /// The provider's `x-request-id`.
    pub request_id: Option<HeaderValue>,
    pub body: SentBody,
}

pub enum SentBody {
    /// A whole answer: read, and its text.
    Whole { completion: Value, text: Bytes, step: StepUsage },
    Stream {
        events: Events,
        /// What the call has used if it ends now: asked when the stream is dropped before its end.
        so_far: Box<dyn Fn() -> StepUsage + Send + Sync>,
    },
}

/// The limits that a provider says it has for a key, in its answers' headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatedLimits {
    pub requests: Option<u64>,
    pub tokens: Option<u64>,
}
