//! What is asked of a model, what comes back, and how it fails.

use std::pin::Pin;

use bytes::Bytes;
use futures::Stream;
use http::HeaderValue;
use serde_json::Value;

use crate::ledger::StepUsage;
use crate::model::error::shown;
use crate::model::{Error, Rejection};

/// What a call of the pool answers.
pub struct Reply {
    pub platform: String,
    /// The upstream's id of the model, without the platform: what the ledger and answers name.
    pub model: String,
    /// The provider's own `x-request-id`.
    pub request_id: Option<HeaderValue>,
    pub answer: Answer,
}

pub enum Answer {
    /// A whole answer, such as a `chat.completion`: read, and the text as the provider sent it.
    Whole { completion: Value, text: Bytes, step: StepUsage },
    /// A stream that has begun: its first piece is there.
    Stream(Events),
}

/// Ends with exactly one [`Event::End`] or [`Event::Cut`].
pub type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

#[derive(Debug, Clone)]
pub enum Event {
    Piece(Piece),
    /// The stream ended as it should.
    End(StepUsage),
    /// The stream broke off after it had begun: a sentence for the caller, and what it used until then.
    Cut {
        error: String,
        step: StepUsage,
    },
}

/// One `chat.completion.chunk`, or one event of a response.
#[derive(Debug, Clone, Default)]
pub struct Piece {
    /// The JSON text as the provider sent it, on one line. `usage` may stand in it beside choices.
    pub data: String,
    /// The event's name, where the stream has named ones (a response's).
    pub event: String,
    /// `choices[0].delta.content`; empty where there is none.
    pub text: String,
    pub tool_calls: Vec<ToolCallPart>,
    /// Also the name of the event that ends a response.
    pub finish_reason: Option<String>,
    /// A report of usage without choices: the chunk that a caller who didn't ask for usage must not see.
    pub only_usage: bool,
}

/// A part of a tool call: parts with the same index belong together, their arguments in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCallPart {
    pub index: usize,
    pub id: Option<String>,
    pub name: Option<String>,
    pub arguments: String,
}

/// Why one provider didn't answer, before the first piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An answer with a status of 400 or more.
    Status {
        status: u16,
        /// From `retry-after-ms` or `Retry-After`, in milliseconds.
        retry_after_ms: Option<u64>,
        /// From `x-ratelimit-reset-*`, in milliseconds: the latest of the windows that are spent, else of all.
        reset_ms: Option<u64>,
        /// The provider's own words on what is wrong with the request, for 400, 404, 413 and 422 alone; at
        /// most 500 characters.
        message: Option<String>,
        /// `error.code` or `error.type` as the provider named it.
        code: Option<String>,
        /// `error.param`, where the message is told.
        param: Option<String>,
    },
    /// No first byte, or none for too long.
    Timeout,
    /// The connection could not be made, or broke.
    Connection,
    /// The provider doesn't have the call that was made.
    NotOffered,
    /// An answer that is none to what was asked: in what way.
    Garbled(&'static str),
}

/// Why a call of the pool came to nothing. Nothing was charged then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// No candidate is called by that alias or `PLATFORM/MODEL`.
    UnknownModel { asked: String },
    /// Every candidate is out of room or in a stated cooldown; the soonest recovery of all, in milliseconds.
    NoRoom { message: String, retry_after_ms: u64 },
    /// Every candidate that could be asked failed.
    AllFailed { message: String },
    /// No provider of the model has the call that was made.
    NotOffered { asked: String, path: &'static str },
    /// The provider found fault with the request (its 400).
    Rejected(Rejection),
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::UnknownModel { asked } => Error::NotFound(format!(
                "there is no model \"{}\"; GET /v1/models lists those that can be asked for",
                shown(&asked, 200)
            )),
            CallError::NotOffered { asked, path } => Error::NotFound(format!(
                "no provider of the model \"{}\" offers /v1{path}; ask for another model",
                shown(&asked, 200)
            )),
            CallError::NoRoom { message, retry_after_ms } => {
                Error::NoRoom { message, retry_after_s: retry_after_ms.div_ceil(1000).max(1) }
            }
            CallError::AllFailed { message } => Error::Provider(message),
            CallError::Rejected(rejection) => Error::Rejected(Box::new(rejection)),
        }
    }
}
