//! Signing in and out, and who a session belongs to. The JSON API and the pages call these alike.

use std::net::IpAddr;

use tower_sessions::{Session, session};

use crate::model::ids::{is_id, normal_email};
use crate::model::{Error, Membership, Role, UserId, WorkspaceId};
use crate::store::Store;

use super::sessions::USER;
use super::{Caller, Identity, Via};

/// The key in a session's data under which the selected workspace stands.
const WORKSPACE: &str = "workspace";

impl Identity {
    /// Signs in: the session gets a new id and nothing of what it held before.
    ///
    /// # Errors
    /// Unauthenticated, in the same words whatever doesn't match; throttled after too many of them.
    pub async fn sign_in(
        &self,
        session: &Session,
        email: &str,
        password: String,
        address: Option<IpAddr>,
    ) -> Result<Caller, Error> {
        let email = normal_email(email);
        // What is no address can't be anyone's: all of it counts as one account.
        let attempt = self.throttle.begin(email.as_deref().unwrap_or(""), address).await?;
        let found = match email {
            Some(email) => find(&self.store, email).await?,
            None => None,
        };
        let (user, hash) = found.map_or((None, None), |(user, hash)| (Some(user), hash));
        let matches = self.passwords.verify(password, hash).await?;
        let Some(user) = user.filter(|_| matches) else {
            attempt.failed();
            tracing::info!(client.address = ?address, "a sign-in failed");
            return Err(mismatch());
        };
        attempt.succeeded();
        let caller = load_user(&self.store, &user, None).await?.ok_or_else(mismatch)?;

        session.clear().await;
        session.cycle_id().await.map_err(failed)?;
        session.insert(USER, &user).await.map_err(failed)?;
        // Now rather than at the end of the response, so that a failure can be told.
        session.save().await.map_err(failed)?;
        tracing::info!(user.id = %user, client.address = ?address, "signed in");
        Ok(caller)
    }

    /// Ends the session, if there is one.
    pub async fn sign_out(&self, session: &Session) -> Result<(), Error> {
        if session.id().is_some() { session.flush().await.map_err(failed) } else { Ok(()) }
    }

    /// Who the session belongs to; none where nobody signed in, or the user was removed.
    pub async fn caller_of_session(&self, session: &Session) -> Result<Option<Caller>, Error> {
        let Some(user) = text(session, USER).await? else {
            return Ok(None);
        };
        let selected = text(session, WORKSPACE).await?.map(WorkspaceId::from);
        Ok(load_user(&self.store, &user.into(), selected).await?)
    }

    /// Selects a workspace for this session alone: one of the caller's, any that exists for admins.
    ///
    /// # Errors
    /// Not found, in the same words whether it doesn't exist or isn't the caller's.
    pub async fn select_workspace(
        &self,
        session: &Session,
        caller: &Caller,
        workspace: WorkspaceId,
    ) -> Result<(), Error> {
        let is_member = caller.memberships.iter().any(|m| m.workspace == workspace);
        let may_select = is_member || (caller.admin && exists(&self.store, &workspace).await?);
        if !may_select {
            return Err(Error::no_such("workspace", workspace.as_str()));
        }
        session.insert(WORKSPACE, &workspace).await.map_err(failed)?;
        session.save().await.map_err(failed)
    }
}

/// A user who may sign in, and the hash of the password.
async fn find(store: &Store, email: String) -> Result<Option<(UserId, Option<String>)>, sqlx::Error> {
    let row: Option<(String, Option<String>)> =
        sqlx::query_as("SELECT id, password_hash FROM users WHERE email = $1 AND removed_at_ms IS NULL")
            .bind(email)
            .fetch_optional(store.read())
            .await?;
    Ok(row.map(|(id, hash)| (id.into(), hash)))
}

async fn exists(store: &Store, workspace: &WorkspaceId) -> Result<bool, sqlx::Error> {
    if !is_id(workspace.as_str()) {
        return Ok(false);
    }
    let row: Option<(i64,)> = sqlx::query_as("SELECT 1 FROM workspaces WHERE id = $1")
        .bind(workspace.as_str().to_owned())
        .fetch_optional(store.read())
        .await?;
    Ok(row.is_some())
}

type UserColumns = (String, i64, Option<String>, Option<String>, Option<String>);

/// A user with memberships; `selected` counts where it still exists and is still theirs.
async fn load_user(
    store: &Store,
    user: &UserId,
    selected: Option<WorkspaceId>,
) -> Result<Option<Caller>, sqlx::Error> {
    let rows: Vec<UserColumns> = sqlx::query_as(
        "SELECT u.email, u.admin, m.workspace_id, m.role, (SELECT w.id FROM workspaces w WHERE w.id = $2)
         FROM users u LEFT JOIN memberships m ON m.user_id = u.id
         WHERE u.id = $1 AND u.removed_at_ms IS NULL",
    )
    .bind(user.as_str().to_owned())
    .bind(selected.map(|workspace| workspace.as_str().to_owned()))
    .fetch_all(store.read())
    .await?;
    let Some((email, admin, .., selected)) = rows.first() else {
        return Ok(None);
    };
    let (email, admin, selected) = (email.clone(), *admin != 0, selected.clone().map(WorkspaceId::from));
    let mut memberships: Vec<Membership> =
        rows.into_iter().filter_map(|(_, _, workspace, role, _)| membership(workspace, role)).collect();
    memberships.sort_by(|a, b| a.workspace.cmp(&b.workspace));
    let selected = selected
        .filter(|selected| admin || memberships.iter().any(|m| m.workspace == *selected))
        .or_else(|| memberships.first().map(|m| m.workspace.clone()));
    Ok(Some(Caller { user: user.clone(), email, admin, memberships, via: Via::Session { selected } }))
}

/// A role that isn't known gives no right.
pub(super) fn membership(workspace: Option<String>, role: Option<String>) -> Option<Membership> {
    let role: Role = role?.parse().ok()?;
    Some(Membership { workspace: workspace?.into(), role })
}

fn mismatch() -> Error {
    Error::Unauthenticated("the email or the password is wrong; check both and try again".into())
}

/// What isn't text was not put there by us, and counts as absent.
async fn text(session: &Session, key: &str) -> Result<Option<String>, Error> {
    let value = session.get_value(key).await.map_err(failed)?;
    Ok(value.and_then(|value| value.as_str().map(str::to_owned)))
}

/// The cause was logged where it arose.
fn failed(_: session::Error) -> Error {
    Error::Unavailable("the sessions can't be reached at the moment; try again".into())
}
