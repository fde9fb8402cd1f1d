//! The one error of every service: what happened and what to do, in a sentence for people.

use serde::{Deserialize, Serialize};

use super::Refusal;
use super::decision::WORTH_WAITING_S;

/// What a caller is told. Nothing inside (SQL, paths, keys, prompts) may be in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Error {
    /// 400: the request can't be read.
    #[error("{0}")]
    Malformed(String),
    /// 400: the provider finds fault with the request.
    #[error("{}", .0.message)]
    Rejected(Box<Rejection>),
    /// 401
    #[error("{0}")]
    Unauthenticated(String),
    /// 403
    #[error("{0}")]
    Forbidden(String),
    /// 404
    #[error("{0}")]
    NotFound(String),
    /// 405
    #[error("{0}")]
    MethodNotAllowed(String),
    /// 409
    #[error("{0}")]
    Conflict(String),
    /// 413
    #[error("{0}")]
    TooLarge(String),
    /// 415
    #[error("{0}")]
    UnsupportedMedia(String),
    /// 422: well-formed but invalid; the message names the field.
    #[error("{0}")]
    Invalid(String),
    /// 429: a limit of the workspace.
    #[error("{}", .0.sentence())]
    Refused(Box<Refusal>),
    /// 429: too many tries (of signing in).
    #[error("{message}")]
    Throttled { message: String, retry_after_s: u64 },
    /// 502: every provider that was asked failed.
    #[error("{0}")]
    Provider(String),
    /// 503: no provider has room.
    #[error("{message}")]
    NoRoom { message: String, retry_after_s: u64 },
    /// 503: the database does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// 500: a fault of ours; the details are in the log alone.
    #[error("something went wrong here; the operator finds the cause in the log")]
    Internal,
}

/// What a provider found wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    pub message: String,
    /// The provider's own code, such as `context_length_exceeded`.
    pub code: Option<String>,
    /// The member that is at fault, as the provider names it.
    pub param: Option<String>,
}

impl Error {
    pub fn status(&self) -> u16 {
        match self {
            Error::Malformed(_) | Error::Rejected(_) => 400,
            Error::Unauthenticated(_) => 401,
            Error::Forbidden(_) => 403,
            Error::NotFound(_) => 404,
            Error::MethodNotAllowed(_) => 405,
            Error::Conflict(_) => 409,
            Error::TooLarge(_) => 413,
            Error::UnsupportedMedia(_) => 415,
            Error::Invalid(_) => 422,
            Error::Refused(_) | Error::Throttled { .. } => 429,
            Error::Internal => 500,
            Error::Provider(_) => 502,
            Error::NoRoom { .. } | Error::Unavailable(_) => 503,
        }
    }

    /// Whole seconds for `Retry-After`, where the error has one.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Error::Refused(refusal) => Some(refusal.retry_after_s()),
            Error::Throttled { retry_after_s, .. } | Error::NoRoom { retry_after_s, .. } => {
                Some((*retry_after_s).max(1))
            }
            _ => None,
        }
    }

    /// Whether the same request may succeed within a minute.
    pub fn worth_retrying(&self) -> bool {
        match self {
            Error::Refused(refusal) => refusal.worth_retrying(),
            Error::NoRoom { retry_after_s, .. } => *retry_after_s <= WORTH_WAITING_S,
            _ => true,
        }
    }

    pub fn not_signed_in() -> Self {
        Error::Unauthenticated("sign in first, or send an API key as a bearer token".into())
    }

    /// The same words whether the record doesn't exist or belongs to a workspace that the caller isn't in.
    pub fn no_such(what: &str, id: &str) -> Self {
        let shown = shown(id, 128);
        Error::NotFound(format!("there is no {what} \"{shown}\" that you can see; check its id"))
    }
}

/// What someone sent, as a part of a sentence: on its line, and not without end.
pub fn shown(text: &str, longest: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(longest).collect()
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::Refused(Box::new(refusal))
    }
}
