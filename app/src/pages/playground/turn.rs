//! A prompt and what came of it.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use tollkeeper::model::Usage;
use tollkeeper::model::answers::{Said, Speaker};
use tollkeeper::model::dashboard::Spec;
use tollkeeper::model::figures::Figure;

use super::state::Target;

#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) id: usize,
    pub(crate) target: Target,
    pub(crate) prompt: String,
    pub(crate) reply: RwSignal<Reply>,
}

/// What has come so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) text: String,
    /// Names of the tools that the model called, in order.
    pub(crate) tools: Vec<String>,
    pub(crate) spec: Option<Spec>,
    /// In the order of the spec's widgets, where they are known.
    pub(crate) figures: Vec<Option<Figure>>,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    #[default]
    Running,
    Done {
        model: String,
        usage: Usage,
        /// Model calls that a turn of a chat took.
        steps: Option<u32>,
    },
    Stopped,
    Failed(String),
}

impl Turn {
    pub(crate) fn new(id: usize, target: Target, prompt: String, reply: Reply) -> Self {
        Turn { id, target, prompt, reply: RwSignal::new(reply) }
    }

    /// The turn as messages of a conversation. One without an answer was never part of it.
    pub(crate) fn said(&self) -> Vec<Said> {
        self.reply.with_untracked(|reply| {
            if reply.text.trim().is_empty() {
                return Vec::new();
            }
            vec![
                Said { role: Speaker::User, content: self.prompt.clone() },
                Said { role: Speaker::Assistant, content: reply.text.clone() },
            ]
        })
    }
}

impl Reply {
    /// Whether nothing has come yet.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.is_empty() && self.tools.is_empty() && self.spec.is_none()
    }
}
