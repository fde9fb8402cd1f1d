//! What the admin's pages and the JSON API show of limits and usage.

use serde::{Deserialize, Serialize};

use super::fmt::percent;
use super::{Day, Effective, Origin, Timestamp, WorkspaceId};

/// A limit in a row of `GET /api/admin/workspaces`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct LimitRow {
    /// The workspace's own value: `null` inherits, 0 disables.
    pub r#override: Option<u64>,
    /// The value in force; 0 means disabled.
    pub effective: u64,
    #[cfg_attr(feature = "server", schema(value_type = String, example = "environment"))]
    pub from: Origin,
}

impl LimitRow {
    pub fn new(setting: super::Setting, effective: Effective) -> Self {
        let own = setting.stored().and_then(|n| u64::try_from(n).ok());
        LimitRow { r#override: own, effective: effective.limit.number(), from: effective.from }
    }

    /// The workspace's own setting.
    pub fn setting(&self) -> super::Setting {
        super::Setting::from_stored(self.r#override.map(|n| i64::try_from(n).unwrap_or(i64::MAX)))
    }

    pub fn is_disabled(&self) -> bool {
        self.effective == 0
    }

    /// `default`, `override` or `disabled`: where the limit comes from, as the pages say it.
    pub fn source_word(&self) -> &'static str {
        match (self.is_disabled(), self.from) {
            (true, _) => "disabled",
            (false, Origin::Override) => "override",
            (false, Origin::Environment) => "default",
        }
    }
}

/// A workspace's counts of the current UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Today {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Finished admitted requests.
    pub requests: u64,
    pub refused_rate: u64,
    pub refused_budget: u64,
}

impl Today {
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// A row of `GET /api/admin/workspaces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct WorkspaceRow {
    #[cfg_attr(feature = "server", schema(value_type = String))]
    pub id: WorkspaceId,
    pub name: String,
    pub rate: LimitRow,
    pub budget: LimitRow,
    pub today: Today,
    /// 00:00 UTC, when the day's budget begins anew.
    #[cfg_attr(feature = "server", schema(value_type = String, format = DateTime))]
    pub resets_at: Timestamp,
}

impl WorkspaceRow {
    /// Whole percent of the budget that is used; none when it is disabled.
    pub fn used_percent(&self) -> Option<u64> {
        (!self.budget.is_disabled()).then(|| percent(self.today.tokens(), self.budget.effective))
    }
}

/// From this share of its budget on a workspace counts as near its limit, in percent.
pub const NEAR_PERCENT: u64 = 80;

/// How the list of workspaces is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceSort {
    /// Most used share of the budget first.
    #[default]
    Share,
    Name,
    Tokens,
    Requests,
    Refused,
}

/// Which workspaces the list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceFilter {
    #[default]
    All,
    /// At or over [`NEAR_PERCENT`] of the budget.
    Near,
    /// With an override of either limit.
    Overridden,
    /// Refused at least one request today.
    Refusing,
}

/// What a page of the list asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspacesQuery {
    /// Part of an id or a name, without regard to case.
    pub search: String,
    pub sort: WorkspaceSort,
    pub filter: WorkspaceFilter,
    /// From 1.
    pub page: u32,
}

/// Rows a page of any list.
pub const PAGE_SIZE: u32 = 25;

/// A page of the list, and what stands above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspacesPage {
    pub now: Timestamp,
    pub resets_at: Timestamp,
    pub rows: Vec<WorkspaceListRow>,
    /// The page shown, from 1, and how many there are (at least 1).
    pub page: u32,
    pub pages: u32,
    /// Rows that the search and the filter leave.
    pub matching: u64,
    /// Over all workspaces that the viewer may see.
    pub totals: Totals,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceListRow {
    pub row: WorkspaceRow,
    /// Tokens of the last seven UTC days, oldest first, today last.
    pub week: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    pub workspaces: u64,
    pub tokens: u64,
    pub tokens_yesterday: u64,
    pub requests: u64,
    pub refused_rate: u64,
    pub refused_budget: u64,
    pub near: u64,
    pub overridden: u64,
    pub refusing: u64,
}

/// A part of today's usage: one route, one model or one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    pub tokens: u64,
    pub requests: u64,
}

/// One bar of the chart of the last 30 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayTokens {
    pub day: Day,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub requests: u64,
}

/// All that a workspace's page shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceDetail {
    pub now: Timestamp,
    pub row: WorkspaceRow,
    /// What inheriting would mean, as numbers in which 0 is disabled.
    pub default_rate: u64,
    pub default_budget: u64,
    /// Tokens of today that were estimated, for want of a report.
    pub estimated_tokens: u64,
    pub by_route: Vec<Part>,
    pub by_model: Vec<Part>,
    pub by_user: Vec<Part>,
    /// The last 30 UTC days, oldest first, today last; every day is there.
    pub days: Vec<DayTokens>,
    /// This workspace's newest audit lines.
    pub audit: Vec<AuditLine>,
}

/// An audit entry as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLine {
    pub id: i64,
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub workspace: Option<WorkspaceId>,
    /// What changed: a field's name, its value before and after, each as text for people.
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub field: String,
    pub before: String,
    pub after: String,
}

/// What a page of the audit trail asks for; what is empty doesn't matter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditQuery {
    pub workspace: String,
    /// An e-mail address, `cli`, `apply` or `system`.
    pub actor: String,
    /// UTC days, inclusive, as `YYYY-MM-DD`.
    pub from: String,
    pub to: String,
    /// Entries older than this id, or the ones next newer than that.
    pub before: Option<i64>,
    pub after: Option<i64>,
}

/// A page of the audit trail, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditPage {
    pub lines: Vec<AuditLine>,
    /// The page of newer entries is asked for with this as `after`, if there is one.
    pub newer: Option<i64>,
    /// The page of older entries is asked for with this as `before`, if there is one.
    pub older: Option<i64>,
}

/// A row of `GET /api/admin/usage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct UsageRow {
    #[cfg_attr(feature = "server", schema(value_type = String))]
    pub workspace_id: WorkspaceId,
    #[cfg_attr(feature = "server", schema(value_type = String, format = Date))]
    pub day: Day,
    pub route: String,
    /// The upstream's id, without the platform.
    pub model: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub requests: u64,
    pub estimated_input_tokens: u64,
    pub estimated_output_tokens: u64,
}
