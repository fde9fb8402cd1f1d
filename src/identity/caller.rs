//! The caller of a request: the rules of the contract's table "Who may do what", as functions.

use crate::audit;
use crate::model::{Error, Me, Membership, Role, UserId, WorkspaceId};
use crate::reports::Scope;

/// A signed-in user, or an API key acting as its user in its one workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub user: UserId,
    pub email: String,
    /// A platform admin.
    pub admin: bool,
    /// By workspace id; of a key's user, only that in the key's workspace.
    pub memberships: Vec<Membership>,
    pub via: Via,
}

/// How the caller showed who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// `selected` is a workspace that exists and that the user may work in, the first membership
    /// unless another was chosen.
    Session {
        selected: Option<WorkspaceId>,
    },
    Key {
        id: String,
        workspace: WorkspaceId,
    },
}

impl Caller {
    pub fn me(&self) -> Me {
        Me {
            email: self.email.clone(),
            admin: self.admin,
            memberships: self.memberships.clone(),
            selected_workspace: match &self.via {
                Via::Session { selected } => selected.clone(),
                Via::Key { workspace, .. } => Some(workspace.clone()),
            },
        }
    }

    /// Who stands in the audit trail.
    pub fn actor(&self) -> audit::Actor {
        audit::Actor::User(self.email.clone())
    }

    /// Whether records of this workspace exist for the caller; where not, the answer is 404.
    pub fn belongs_to(&self, workspace: &WorkspaceId) -> bool {
        self.may_work_in(workspace) && (self.admin || self.role_in(workspace).is_some())
    }

    /// # Errors
    /// Forbidden, with a sentence.
    pub fn may_call_models(&self, workspace: &WorkspaceId) -> Result<(), Error> {
        if !self.may_work_in(workspace) {
            return Err(Error::Forbidden(
                "this API key calls models in its own workspace only; use a key of the other workspace"
                    .into(),
            ));
        }
        match self.role_in(workspace) {
            _ if self.admin => Ok(()),
            Some(role) if role.may_call_models() => Ok(()),
            Some(role) => Err(Error::Forbidden(format!(
                "a {role} of workspace \"{workspace}\" may not call models; ask an admin for the role editor"
            ))),
            None => Err(Error::Forbidden(format!(
                "you are not a member of workspace \"{workspace}\"; ask an admin to add you"
            ))),
        }
    }

    /// # Errors
    /// Forbidden to all but platform admins who signed in.
    pub fn require_admin(&self) -> Result<(), Error> {
        self.require_session()?;
        if self.admin {
            Ok(())
        } else {
            Err(Error::Forbidden("only platform admins may do this; ask one".into()))
        }
    }

    /// The workspaces whose settings the caller may see.
    ///
    /// # Errors
    /// Forbidden to those who may see none, and to keys.
    pub fn settings_scope(&self) -> Result<Scope, Error> {
        self.require_session()?;
        if self.admin {
            return Ok(Scope::All);
        }
        let own = self.memberships.iter().filter(|m| m.role.may_see_settings());
        let own: Vec<WorkspaceId> = own.map(|m| m.workspace.clone()).collect();
        if own.is_empty() {
            return Err(Error::Forbidden("only admins and source-admins may see this; ask an admin".into()));
        }
        Ok(Scope::Only(own))
    }

    /// The workspaces whose records exist for the caller; `None` means all of them.
    pub fn workspaces(&self) -> Option<Vec<WorkspaceId>> {
        match &self.via {
            Via::Session { .. } if self.admin => None,
            Via::Session { .. } => Some(self.memberships.iter().map(|m| m.workspace.clone()).collect()),
            Via::Key { workspace, .. } => {
                Some(Some(workspace.clone()).filter(|own| self.belongs_to(own)).into_iter().collect())
            }
        }
    }

    /// # Errors
    /// Forbidden to members who may not see the settings of this workspace; to others it doesn't exist.
    pub fn may_see_settings_of(&self, workspace: &WorkspaceId) -> Result<(), Error> {
        if self.settings_scope()?.contains(workspace) {
            Ok(())
        } else if self.belongs_to(workspace) {
            Err(Error::Forbidden(format!(
                "only admins and source-admins of workspace \"{workspace}\" may see this; ask an admin"
            )))
        } else {
            Err(Error::no_such("workspace", workspace.as_str()))
        }
    }

    /// The workspace of what is not tied to a record: the session's selection or the key's own.
    ///
    /// # Errors
    /// A conflict where an admin has yet to select one, forbidden where there is none to select.
    pub fn selected_workspace(&self) -> Result<WorkspaceId, Error> {
        match &self.via {
            Via::Session { selected: Some(workspace) } | Via::Key { workspace, .. } => Ok(workspace.clone()),
            Via::Session { selected: None } if self.admin => Err(Error::Conflict(
                "no workspace is selected; select one first (PUT /api/me/workspace)".into(),
            )),
            Via::Session { selected: None } => {
                Err(Error::Forbidden("you are not a member of any workspace; ask an admin to add you".into()))
            }
        }
    }

    fn role_in(&self, workspace: &WorkspaceId) -> Option<Role> {
        self.memberships.iter().find(|m| m.workspace == *workspace).map(|m| m.role)
    }

    /// A key works in its workspace alone, whatever its user may do.
    fn may_work_in(&self, workspace: &WorkspaceId) -> bool {
        match &self.via {
            Via::Session { .. } => true,
            Via::Key { workspace: own, .. } => own == workspace,
        }
    }

    fn require_session(&self) -> Result<(), Error> {
        match self.via {
            Via::Session { .. } => Ok(()),
            Via::Key { .. } => {
                Err(Error::Forbidden("API keys do not open the settings; sign in instead".into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(admin: bool, memberships: &[(&str, Role)], via: Via) -> Caller {
        let memberships = memberships
            .iter()
            .map(|(id, role)| Membership { workspace: (*id).into(), role: *role })
            .collect();
        Caller { user: "u".into(), email: "ada@example.com".into(), admin, memberships, via }
    }

    fn session(selected: Option<&str>) -> Via {
        Via::Session { selected: selected.map(Into::into) }
    }

    fn key(workspace: &str) -> Via {
        Via::Key { id: "k".into(), workspace: workspace.into() }
    }

    #[test]
    fn the_contracts_table() {
        let (w, other) = ("acme".into(), "globex".into());
        // (caller, models in w, belongs to w, belongs to another, settings, admin)
        let cases = [
            (caller(true, &[], session(None)), true, true, true, true, true),
            (caller(false, &[("acme", Role::SourceAdmin)], session(None)), true, true, false, true, false),
            (caller(false, &[("acme", Role::Editor)], session(None)), true, true, false, false, false),
            (caller(false, &[("acme", Role::Viewer)], session(None)), false, true, false, false, false),
            (caller(false, &[], session(None)), false, false, false, false, false),
            (caller(true, &[], key("acme")), true, true, false, false, false),
            (caller(false, &[("acme", Role::SourceAdmin)], key("acme")), true, true, false, false, false),
            (caller(false, &[("acme", Role::Viewer)], key("acme")), false, true, false, false, false),
            (caller(false, &[], key("acme")), false, false, false, false, false),
        ];
        for (who, models, here, there, settings, admin) in cases {
            assert_eq!(who.may_call_models(&w).is_ok(), models, "{who:?}");
            assert_eq!(who.belongs_to(&w), here, "{who:?}");
            assert_eq!(who.belongs_to(&other), there, "{who:?}");
            assert_eq!(who.may_call_models(&other).is_ok(), there, "{who:?}");
            assert_eq!(who.settings_scope().is_ok(), settings, "{who:?}");
            assert_eq!(who.require_admin().is_ok(), admin, "{who:?}");
            for refusal in
                [who.may_call_models(&w).err(), who.require_admin().err(), who.settings_scope().err()]
            {
                assert!(refusal.is_none_or(|e| e.status() == 403));
            }
        }
    }

    #[test]
    fn source_admins_see_their_own_workspaces_settings() {
        let roles = [("acme", Role::SourceAdmin), ("globex", Role::Editor), ("hooli", Role::SourceAdmin)];
        let who = caller(false, &roles, session(None));
        assert_eq!(who.settings_scope(), Ok(Scope::Only(vec!["acme".into(), "hooli".into()])));
        let status = |id: &str| who.may_see_settings_of(&id.into()).map_err(|error| error.status());
        assert_eq!((status("acme"), status("globex"), status("other")), (Ok(()), Err(403), Err(404)));
        assert_eq!(caller(true, &[], session(None)).settings_scope(), Ok(Scope::All));
    }

    #[test]
    fn the_selected_workspace_is_the_sessions_or_the_keys() {
        assert_eq!(caller(true, &[], session(Some("acme"))).selected_workspace(), Ok("acme".into()));
        assert_eq!(caller(false, &[], key("acme")).selected_workspace(), Ok("acme".into()));
        assert_eq!(caller(true, &[], session(None)).selected_workspace().unwrap_err().status(), 409);
        assert_eq!(caller(false, &[], session(None)).selected_workspace().unwrap_err().status(), 403);
    }

    #[test]
    fn records_are_listed_of_the_workspaces_that_the_caller_belongs_to() {
        let roles = [("acme", Role::Viewer), ("globex", Role::Editor)];
        let listed = |caller: Caller| caller.workspaces();
        assert_eq!(listed(caller(true, &[], session(None))), None);
        assert_eq!(listed(caller(false, &roles, session(None))), Some(vec!["acme".into(), "globex".into()]));
        assert_eq!(listed(caller(true, &[], key("acme"))), Some(vec!["acme".into()]));
        assert_eq!(listed(caller(false, &roles[..1], key("acme"))), Some(vec!["acme".into()]));
        assert_eq!(listed(caller(false, &[], key("acme"))), Some(vec![]));
    }
}
