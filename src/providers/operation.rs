//! Which of OpenAI's calls is made: where it goes, and what a whole answer to it looks like.

use serde_json::Value;

use super::upstream::Tally;
use super::{Failure, completion, embeddings, responses};

/// A call of OpenAI's interface that a provider may offer. Chat is what every provider has; of the others
/// nothing in the directory says which provider has them, so one is asked and may say that it doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Chat,
    Embeddings,
    Responses,
}

impl Operation {
    /// What follows the provider's base URL, and ours.
    pub fn path(self) -> &'static str {
        match self {
            Operation::Chat => "/chat/completions",
            Operation::Embeddings => "/embeddings",
            Operation::Responses => "/responses",
        }
    }

    /// Whether an answer with this status says that the provider doesn't have the call at all.
    pub(super) fn is_missing(self, status: u16) -> bool {
        self != Operation::Chat && matches!(status, 404 | 405 | 501)
    }

    /// A whole answer, checked; its output is counted on the tally.
    pub(super) fn read_whole(self, answer: &Value, tally: &Tally, key: Option<&str>) -> Result<(), Failure> {
        match self {
            Operation::Chat => completion::read_whole(answer, tally, key),
            Operation::Embeddings => embeddings::read_whole(answer, tally, key),
            Operation::Responses => responses::read_whole(answer, tally, key),
        }
    }
}
