//! What the admin's pages and the JSON API show of limits and usage: read, never written here.
//!
//! Everything is computed from the tables when it is asked for, with the resolver and the clock
//! that enforcement uses, so a page can't disagree with a refusal.

mod audit_lines;
mod audit_page;
mod figures;
mod providers;
mod workspace;
mod workspaces;

use crate::clock::SharedClock;
use crate::model::limit::{Defaults, Overrides};
use crate::model::reports::{LimitRow, Today, WorkspaceRow};
use crate::model::{Day, Setting, WorkspaceId};
use crate::store::{Store, to_u64};

pub use audit_lines::line as audit_line;
pub use figures::figures;

#[derive(Clone)]
pub struct Reports {
    store: Store,
    clock: SharedClock,
    defaults: Defaults,
}

/// Which workspaces a viewer may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    All,
    Only(Vec<WorkspaceId>),
}

impl Scope {
    pub fn contains(&self, workspace: &WorkspaceId) -> bool {
        match self {
            Scope::All => true,
            Scope::Only(some) => some.contains(workspace),
        }
    }
}

impl Reports {
    pub fn new(store: Store, clock: SharedClock, defaults: Defaults) -> Self {
        Self { store, clock, defaults }
    }

    fn row(&self, columns: Columns, today: Day) -> WorkspaceRow {
        let (id, name, rate, budget, input, output, requests, refused_rate, refused_budget) = columns;
        let own = Overrides { rate: Setting::from_stored(rate), budget: Setting::from_stored(budget) };
        let limits = self.defaults.resolve(own);
        WorkspaceRow {
            id: id.into(),
            name,
            rate: LimitRow::new(own.rate, limits.rate),
            budget: LimitRow::new(own.budget, limits.budget),
            today: Today {
                input_tokens: to_u64(input),
                output_tokens: to_u64(output),
                requests: to_u64(requests),
                refused_rate: to_u64(refused_rate),
                refused_budget: to_u64(refused_budget),
            },
            resets_at: today.end(),
        }
    }
}

/// id, name, the two settings, input, output, requests, refused by rate, refused by budget.
type Columns = (String, String, Option<i64>, Option<i64>, i64, i64, i64, i64, i64);
