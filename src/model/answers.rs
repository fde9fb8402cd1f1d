//! What the model routes take and answer, as the API writes it and the playground reads it.

use serde::{Deserialize, Serialize};

use super::Usage;
use super::dashboard::Spec;

/// The answer of `POST /api/generate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Generated {
    #[cfg_attr(feature = "server", schema(value_type = Object))]
    pub spec: Spec,
    /// The upstream's id of the model.
    pub model: String,
    #[cfg_attr(feature = "server", schema(value_type = Object))]
    pub usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    User,
    Assistant,
}

/// A message of a dashboard's chat so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Said {
    #[cfg_attr(feature = "server", schema(value_type = String, example = "user"))]
    pub role: Speaker,
    pub content: String,
}

/// What a turn of a dashboard's chat answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Done {
    /// The assistant's text.
    pub message: String,
    /// The upstream's id of the model that answered last.
    pub model: String,
    /// Model calls that the turn took.
    pub steps: u32,
    #[cfg_attr(feature = "server", schema(value_type = Object))]
    pub usage: Usage,
}
