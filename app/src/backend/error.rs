use std::fmt;

use serde::{Deserialize, Serialize};
use server_fn::codec::JsonEncoding;
use server_fn::error::{FromServerFnError, ServerFnErrorErr};
use tollkeeper::model::Error;

/// Why a server function didn't do its work, on its way to the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PageError(pub(crate) Error);

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromServerFnError for PageError {
    type Encoder = JsonEncoding;

    /// Faults between page and server, such as a lost connection; their details help nobody who reads a page.
    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        Self(match error {
            ServerFnErrorErr::Args(_)
            | ServerFnErrorErr::MissingArg(_)
            | ServerFnErrorErr::Deserialization(_) => {
                Error::Malformed("the request can't be read; reload the page and try again".into())
            }
            ServerFnErrorErr::Request(_) | ServerFnErrorErr::Response(_) => {
                Error::Unavailable("the server can't be reached; check the connection and try again".into())
            }
            _ => Error::Internal,
        })
    }
}
