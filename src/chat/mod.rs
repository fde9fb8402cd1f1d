//! What Tollkeeper itself asks of models: a spec or a draft as JSON ([`structured`]), and the turns of
//! a dashboard's chat with its tools ([`turn`]).

pub mod schema;
pub mod structured;
mod tools;
pub mod turn;

use serde_json::{Map, Value, json};

use crate::providers::ChatRequest;

/// The alias that the `/api` routes ask for.
pub const DEFAULT_ALIAS: &str = "default";
/// What an answer of these routes typically has, in tokens, for reservations.
pub const TYPICAL_OUTPUT: u64 = 1_000;

fn message(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}

fn request(
    messages: &[Value],
    more: impl IntoIterator<Item = (&'static str, Value)>,
    stream: bool,
) -> ChatRequest {
    let mut body = Map::new();
    body.insert("messages".into(), Value::Array(messages.to_vec()));
    body.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    ChatRequest { body, stream }
}
