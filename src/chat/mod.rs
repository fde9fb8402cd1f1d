//! What Tollkeeper itself asks of models: a spec or a draft as JSON ([`structured`]), and the turns of
//! a dashboard's chat with its tools ([`turn`]).

pub mod schema;
pub mod structured;
mod tools;
pub mod turn;

use serde_json::{Map, Value, json};

use crate::limits::Admission;
use crate::model::Error;
use crate::providers::{CallError, ModelRequest, Pool, Reply};

/// The alias that the `/api` routes ask for.
pub const DEFAULT_ALIAS: &str = "default";
/// When to ask again where no model is configured: an operator may be at it.
const NOT_CONFIGURED_RETRY_S: u64 = 60;
/// What an answer of these routes typically has, in tokens, for reservations.
pub const TYPICAL_OUTPUT: u64 = 1_000;

/// Calls the model of the `/api` routes. Where none is configured, that is not the caller's mistake.
async fn call_default(pool: &Pool, admission: &Admission, request: ModelRequest) -> Result<Reply, Error> {
    pool.call(admission, DEFAULT_ALIAS, request).await.map_err(|error| match error {
        CallError::UnknownModel { .. } => Error::NoRoom {
            message: "no model is configured for this; an operator has to name one with LLM_BASE_URL and LLM_MODEL, \
                      or apply a platform with a model of the alias \"default\""
                .into(),
            retry_after_s: NOT_CONFIGURED_RETRY_S,
        },
        error => error.into(),
    })
}

fn message(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}

fn request(
    messages: &[Value],
    more: impl IntoIterator<Item = (&'static str, Value)>,
    stream: bool,
) -> ModelRequest {
    let mut body = Map::new();
    body.insert("messages".into(), Value::Array(messages.to_vec()));
    body.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    ModelRequest::new(body, stream)
}
