//! Making keys.

use serde_json::{Value, json};

use super::form::{hash, hint, new_key};
use crate::audit::{self, Actor, Change, hex};
use crate::identity::{Caller, Identity, Via};
use crate::model::ids::{is_id, is_name, normal_email};
use crate::model::{Error, Timestamp, WorkspaceId};
use crate::store::Tx;

/// Keys in use that a user has at most.
const KEYS_A_USER: i64 = 100;

pub struct NewKey<'a> {
    /// Of the user as whom the key acts.
    pub email: &'a str,
    pub workspace: &'a WorkspaceId,
    pub name: &'a str,
    pub expires_at: Option<Timestamp>,
}

pub struct CreatedKey {
    pub id: String,
    /// To be shown once; it is not stored.
    pub key: String,
}

impl Identity {
    /// Makes a key for any member of the workspace (what it may do there is their role's matter),
    /// or for a platform admin.
    pub async fn create_key(&self, actor: &Actor, new: NewKey<'_>) -> Result<CreatedKey, Error> {
        if !is_name(new.name) {
            return Err(Error::Invalid(
                "name must have 1 to 200 characters, none of them control characters".into(),
            ));
        }
        let now = self.clock.now();
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::Invalid("expires_at must be in the future".into()));
        }
        let email = normal_email(new.email)
            .ok_or_else(|| Error::Invalid("the user must be given by e-mail address".into()))?;

        let mut tx = self.store.begin().await?;
        let user = user_for_key(&mut tx, &email, new.workspace).await?;
        let (in_use,): (i64,) = sqlx::query_as(
            "SELECT COUNT(*) FROM api_keys WHERE user_id = $1 AND revoked_at_ms IS NULL
             AND (expires_at_ms IS NULL OR expires_at_ms > $2)",
        )
        .bind(user.clone())
        .bind(now.ms())
        .fetch_one(&mut *tx)
        .await?;
        if in_use >= KEYS_A_USER {
            return Err(Error::Conflict(format!("{email} has {in_use} API keys already; revoke some first")));
        }
        let key = new_key();
        // Ids sort by the time of their making.
        let id = format!("key_{:012x}{}", now.ms(), hex(&rand::random::<[u8; 5]>()));
        sqlx::query(
            "INSERT INTO api_keys (id, hash, hint, user_id, workspace_id, name, created_at_ms, expires_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(id.clone())
        .bind(hash(&key))
        .bind(hint(&key))
        .bind(user)
        .bind(new.workspace.as_str().to_owned())
        .bind(new.name.to_owned())
        .bind(now.ms())
        .bind(new.expires_at.map(Timestamp::ms))
        .execute(&mut *tx)
        .await?;
        let after = json!({ "id": id, "user": email, "name": new.name, "expires_at": new.expires_at });
        record(&mut tx, now, actor, "key.create", new.workspace, None, after).await?;
        tx.commit().await?;
        Ok(CreatedKey { id, key })
    }

    /// A caller makes a key for themselves, where they may call models.
    pub async fn create_own_key(
        &self,
        caller: &Caller,
        workspace: &WorkspaceId,
        name: &str,
        expires_at: Option<Timestamp>,
    ) -> Result<CreatedKey, Error> {
        if matches!(caller.via, Via::Key { .. }) {
            return Err(Error::Forbidden("an API key can't make another; sign in instead".into()));
        }
        if !caller.belongs_to(workspace) {
            return Err(Error::no_such("workspace", workspace.as_str()));
        }
        caller.may_call_models(workspace)?;
        self.create_key(&caller.actor(), NewKey { email: &caller.email, workspace, name, expires_at }).await
    }
}

/// The id of the user, if a key for them in this workspace makes sense.
async fn user_for_key(tx: &mut Tx, email: &str, workspace: &WorkspaceId) -> Result<String, Error> {
    if !is_id(workspace.as_str()) {
        return Err(Error::no_such("workspace", workspace.as_str()));
    }
    let row: Option<(String, i64, Option<String>, Option<String>)> = sqlx::query_as(
        "SELECT u.id, u.admin, w.id, m.role FROM users u
         LEFT JOIN workspaces w ON w.id = $2
         LEFT JOIN memberships m ON m.user_id = u.id AND m.workspace_id = w.id
         WHERE u.email = $1 AND u.removed_at_ms IS NULL",
    )
    .bind(email.to_owned())
    .bind(workspace.as_str().to_owned())
    .fetch_optional(&mut **tx)
    .await?;
    match row {
        None => Err(Error::NotFound(format!("there is no user {email}; check the address"))),
        Some((.., None, _)) => Err(Error::no_such("workspace", workspace.as_str())),
        Some((_, 0, _, None)) => Err(Error::Invalid(format!(
            "{email} is not a member of workspace \"{workspace}\"; add them first, or name another workspace"
        ))),
        Some((user, ..)) => Ok(user),
    }
}

/// Leaves the change in the trail; the key itself is never in it.
pub(super) async fn record(
    tx: &mut Tx,
    now: Timestamp,
    actor: &Actor,
    action: &str,
    workspace: &WorkspaceId,
    before: Option<Value>,
    after: Value,
) -> Result<(), sqlx::Error> {
    let change = Change { actor, action, workspace: Some(workspace), before, after: Some(after) };
    audit::append(tx, now, change).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{create, site};
    use super::*;
    use crate::identity::testing::count;
    use crate::model::{Membership, Role};

    #[tokio::test]
    async fn keys_are_made_for_members_and_admins_of_what_exists() {
        let site = site().await;
        site.user("root@example.com", true, &[]).await;
        site.user("gil@example.com", false, &[]).await;
        create(&site, "ada@example.com", "globex").await.unwrap();
        create(&site, "root@example.com", "acme").await.unwrap();
        let status = async |email: &str, workspace: &str| {
            create(&site, email, workspace).await.err().unwrap().status()
        };
        assert_eq!(status("nobody@example.com", "acme").await, 404);
        assert_eq!(status("ada@example.com", "nowhere").await, 404);
        assert_eq!(status("ada@example.com", "no\0where").await, 404);
        assert_eq!(status("gil@example.com", "acme").await, 422);
        let new = NewKey { email: "ada@example.com", workspace: &"acme".into(), name: " ", expires_at: None };
        assert_eq!(site.identity.create_key(&Actor::Cli, new).await.err().unwrap().status(), 422);
        assert_eq!(count(&site.store, "SELECT COUNT(*) FROM audit_log").await, 2);
    }

    #[tokio::test]
    async fn one_makes_keys_for_oneself_where_one_may_call_models() {
        let site = site().await;
        let key = create(&site, "ada@example.com", "acme").await.unwrap().key;
        let mut ada = site.identity.caller_of_key(&key).await.unwrap().unwrap();
        let own = async |caller: &Caller, workspace: &str| {
            site.identity
                .create_own_key(caller, &workspace.into(), "mine", None)
                .await
                .map_err(|e| e.status())
        };
        assert_eq!(own(&ada, "acme").await.err(), Some(403));
        ada.via = Via::Session { selected: None };
        ada.memberships.push(Membership { workspace: "globex".into(), role: Role::Viewer });
        assert!(own(&ada, "acme").await.is_ok());
        assert_eq!(own(&ada, "globex").await.err(), Some(403));
        assert_eq!(own(&ada, "hooli").await.err(), Some(404));
    }

    #[tokio::test]
    async fn keys_a_user_are_bounded() {
        let site = site().await;
        for _ in 0..KEYS_A_USER {
            create(&site, "ada@example.com", "acme").await.unwrap();
        }
        assert_eq!(create(&site, "ada@example.com", "acme").await.err().unwrap().status(), 409);
        site.run("UPDATE api_keys SET revoked_at_ms = 1 WHERE id IN (SELECT id FROM api_keys LIMIT 1)").await;
        create(&site, "ada@example.com", "acme").await.unwrap();
    }
}
