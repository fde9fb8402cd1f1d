//! Plain data and pure rules: no I/O, no clock, compiles for the browser too.
//!
//! What a limit decides and how it is told (sentence, headers, JSON) lives here, so that the JSON
//! API, the pages and the command line cannot say different things about the same decision.

pub mod access;
pub mod answers;
pub mod dashboard;
pub mod decision;
pub mod error;
pub mod figures;
pub mod fmt;
pub mod ids;
pub mod limit;
pub mod limit_form;
pub mod mode;
pub mod providers;
pub mod reports;
pub mod time;

pub use access::{KeyRow, Me, Membership, Role};
pub use decision::{BudgetRefusal, BudgetState, LimitState, RateRefusal, RateState, Refusal};
pub use error::{Error, Rejection};
pub use ids::{UserId, WorkspaceId};
pub use limit::{Effective, Limit, Origin, Setting};
pub use mode::{Kept, Mode};
pub use time::{Day, Timestamp};

use serde::{Deserialize, Serialize};

/// Where in the ledger a model request is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    Generate,
    SourceDraft,
    Chat,
    Openai,
}

impl Route {
    pub fn as_str(self) -> &'static str {
        match self {
            Route::Generate => "generate",
            Route::SourceDraft => "source-draft",
            Route::Chat => "chat",
            Route::Openai => "openai",
        }
    }
}

/// Tokens of one or several model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl Usage {
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
    }
}
