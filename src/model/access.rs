//! Roles, and what they allow: contract section 3 as functions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Timestamp, WorkspaceId};

/// What a member may do in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub enum Role {
    SourceAdmin,
    Editor,
    Viewer,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::SourceAdmin, Role::Editor, Role::Viewer];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::SourceAdmin => "source-admin",
            Role::Editor => "editor",
            Role::Viewer => "viewer",
        }
    }

    pub fn may_call_models(self) -> bool {
        matches!(self, Role::SourceAdmin | Role::Editor)
    }

    pub fn may_see_settings(self) -> bool {
        matches!(self, Role::SourceAdmin)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Role::ALL.into_iter().find(|role| role.as_str() == text).ok_or(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Membership {
    #[cfg_attr(feature = "server", schema(value_type = String))]
    pub workspace: WorkspaceId,
    pub role: Role,
}

/// The answer of `GET /api/me`: who is calling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Me {
    pub email: String,
    /// A platform admin.
    pub admin: bool,
    /// By workspace id.
    pub memberships: Vec<Membership>,
    #[cfg_attr(feature = "server", schema(value_type = Option<String>))]
    pub selected_workspace: Option<WorkspaceId>,
}

impl Me {
    /// May open Settings → Workspaces (all of them, or their own).
    pub fn sees_workspaces(&self) -> bool {
        self.admin || self.memberships.iter().any(|m| m.role.may_see_settings())
    }

    /// May call models somewhere.
    pub fn calls_models(&self) -> bool {
        self.admin || self.memberships.iter().any(|m| m.role.may_call_models())
    }
}

/// An API key in a list; the key itself is shown once, when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    pub id: String,
    /// The key's first characters, to tell keys apart.
    pub hint: String,
    pub name: String,
    /// Of the user as whom it acts.
    pub email: String,
    /// The one that it works in.
    pub workspace: WorkspaceId,
    pub created_at: Timestamp,
    /// Exclusive.
    pub expires_at: Option<Timestamp>,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}
