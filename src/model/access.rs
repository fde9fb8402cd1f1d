//! Roles, and what they allow: contract section 3 as functions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::WorkspaceId;

/// What a member may do in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
pub struct Membership {
    pub workspace: WorkspaceId,
    pub role: Role,
}

/// The answer of `GET /api/me`: who is calling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Me {
    pub email: String,
    /// A platform admin.
    pub admin: bool,
    /// By workspace id.
    pub memberships: Vec<Membership>,
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
