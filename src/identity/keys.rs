//! API keys: `tk_`, 43 letters and digits of randomness (256 bits), 6 of a checksum. Stored hashed.
//!
//! Every use is looked up in the database, so that a key made, revoked or orphaned by another
//! process is seen at once. The checksum spares the database what never was a key.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::audit::{self, Actor, Change, hex};
use crate::model::ids::{is_name, normal_email};
use crate::model::{Error, KeyRow, Timestamp, UserId, WorkspaceId};
use crate::store::Tx;

use super::sign_in::membership;
use super::{Caller, Identity, Via, random_text};

const PREFIX: &str = "tk_";
const SECRET: usize = 43;
const CHECKSUM: usize = 6;
const HINT: usize = PREFIX.len() + 5;
/// Keys in use that a user has at most.
const KEYS_A_USER: i64 = 100;
/// A revoked key is listed for so long.
const REVOKED_LISTED_MS: i64 = 90 * 24 * 60 * 60_000;
const STEP: i64 = 200;
/// Sorts behind every id.
const BEHIND_ALL: &str = "key_z";

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

type KeyColumns = (
    String,
    String,
    String,
    String,
    String,
    i64,
    Option<i64>,
    Option<i64>,
    Option<i64>,
);

type CallerColumns = (String, String, Option<i64>, String, String, i64, Option<String>);

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
            return Err(Error::Conflict(format!(
                "{email} has {in_use} API keys already; revoke some first"
            )));
        }
        let secret = random_text(SECRET);
        let key = format!("{PREFIX}{secret}{}", checksum(&secret));
        // Ids sort by the time of their making.
        let id = format!("key_{:012x}{}", now.ms(), hex(&rand::random::<[u8; 5]>()));
        sqlx::query(
            "INSERT INTO api_keys (id, hash, hint, user_id, workspace_id, name, created_at_ms, expires_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(id.clone())
        .bind(hash(&key))
        .bind(key[..HINT].to_owned())
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
    ) -> Result<CreatedKey, Error> {
        if matches!(caller.via, Via::Key { .. }) {
            return Err(Error::Forbidden(
                "an API key can't make another; sign in instead".into(),
            ));
        }
        if !caller.belongs_to(workspace) {
            return Err(Error::no_such("workspace", workspace.as_str()));
        }
        caller.may_call_models(workspace)?;
        self.create_key(
            &caller.actor(),
            NewKey {
                email: &caller.email,
                workspace,
                name,
                expires_at: None,
            },
        )
        .await
    }

    /// Newest first: the keys of a user, or of everyone. `before` is the id that the page before
    /// ended with.
    pub async fn list_keys(
        &self,
        of: Option<&UserId>,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<KeyRow>, Error> {
        let before = before
            .filter(|id| id.bytes().all(|b| b.is_ascii_graphic()))
            .unwrap_or(BEHIND_ALL)
            .to_owned();
        let query = match of {
            Some(user) => sqlx::query_as::<_, KeyColumns>(
                "SELECT k.id, k.hint, k.name, u.email, k.workspace_id, k.created_at_ms, k.expires_at_ms,
                   k.last_used_at_ms, k.revoked_at_ms
                 FROM api_keys k JOIN users u ON u.id = k.user_id
                 WHERE k.id < $1 AND k.user_id = $3 ORDER BY k.id DESC LIMIT $2",
            )
            .bind(before)
            .bind(i64::from(limit))
            .bind(user.as_str().to_owned()),
            None => sqlx::query_as::<_, KeyColumns>(
                "SELECT k.id, k.hint, k.name, u.email, k.workspace_id, k.created_at_ms, k.expires_at_ms,
                   k.last_used_at_ms, k.revoked_at_ms
                 FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.id < $1 ORDER BY k.id DESC LIMIT $2",
            )
            .bind(before)
            .bind(i64::from(limit)),
        };
        let rows = query.fetch_all(self.store.read()).await?;
        Ok(rows
            .into_iter()
            .map(
                |(id, hint, name, email, workspace, created, expires, used, revoked)| KeyRow {
                    id,
                    hint,
                    name,
                    email,
                    workspace: workspace.into(),
                    created_at: Timestamp(created),
                    expires_at: expires.map(Timestamp),
                    last_used_at: used.map(Timestamp),
                    revoked_at: revoked.map(Timestamp),
                },
            )
            .collect())
    }

    /// Revokes a key, if it is this user's where one is named. Revoking it again changes nothing.
    pub async fn revoke_key(&self, actor: &Actor, id: &str, of: Option<&UserId>) -> Result<(), Error> {
        let no_such = || Error::no_such("API key", id);
        if !id.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(no_such());
        }
        let mut tx = self.store.begin().await?;
        let row: Option<(String, String, String, String, Option<i64>)> = sqlx::query_as(
            "SELECT u.id, u.email, k.workspace_id, k.name, k.revoked_at_ms
             FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.id = $1",
        )
        .bind(id.to_owned())
        .fetch_optional(&mut *tx)
        .await?;
        let row = row.filter(|(user, ..)| of.is_none_or(|of| of.as_str() == user));
        let Some((_, email, workspace, name, revoked)) = row else {
            return Err(no_such());
        };
        if revoked.is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        sqlx::query("UPDATE api_keys SET revoked_at_ms = $2 WHERE id = $1")
            .bind(id.to_owned())
            .bind(now.ms())
            .execute(&mut *tx)
            .await?;
        let fields = |revoked: bool| json!({ "id": id, "user": email, "name": name, "revoked": revoked });
        let (before, after) = (fields(false), fields(true));
        record(
            &mut tx,
            now,
            actor,
            "key.revoke",
            &workspace.into(),
            Some(before),
            after,
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Who a key acts as; none where it isn't one, is revoked or expired, or its user was removed.
    pub async fn caller_of_key(&self, key: &str) -> Result<Option<Caller>, Error> {
        if !is_well_formed(key) {
            return Ok(None);
        }
        let now = self.clock.now();
        let row: Option<CallerColumns> = sqlx::query_as(
            "SELECT k.id, k.workspace_id, k.last_used_at_ms, u.id, u.email, u.admin, m.role
             FROM api_keys k JOIN users u ON u.id = k.user_id
             LEFT JOIN memberships m ON m.user_id = k.user_id AND m.workspace_id = k.workspace_id
             WHERE k.hash = $1 AND k.revoked_at_ms IS NULL AND (k.expires_at_ms IS NULL OR k.expires_at_ms > $2)
               AND u.removed_at_ms IS NULL",
        )
        .bind(hash(key))
        .bind(now.ms())
        .fetch_optional(self.store.read())
        .await?;
        let Some((id, workspace, last_used_ms, user, email, admin, role)) = row else {
            return Ok(None);
        };
        self.seen.key(&id, last_used_ms.map(Timestamp), now);
        Ok(Some(Caller {
            user: user.into(),
            email,
            admin: admin != 0,
            memberships: membership(Some(workspace.clone()), role).into_iter().collect(),
            via: Via::Key {
                id,
                workspace: workspace.into(),
            },
        }))
    }
}

/// The id of the user, if a key for them in this workspace makes sense.
async fn user_for_key(tx: &mut Tx, email: &str, workspace: &WorkspaceId) -> Result<String, Error> {
    if !crate::model::ids::is_id(workspace.as_str()) {
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
        None => Err(Error::NotFound(format!(
            "there is no user {email}; check the address"
        ))),
        Some((.., None, _)) => Err(Error::no_such("workspace", workspace.as_str())),
        Some((_, 0, _, None)) => Err(Error::Invalid(format!(
            "{email} is not a member of workspace \"{workspace}\"; add them first, or name another workspace"
        ))),
        Some((user, ..)) => Ok(user),
    }
}

async fn record(
    tx: &mut Tx,
    now: Timestamp,
    actor: &Actor,
    action: &str,
    workspace: &WorkspaceId,
    before: Option<Value>,
    after: Value,
) -> Result<(), sqlx::Error> {
    let change = Change {
        actor,
        action,
        workspace: Some(workspace),
        before,
        after: Some(after),
    };
    audit::append(tx, now, change).await
}

/// Deletes some of the keys revoked long ago; the trail keeps what became of them.
pub(super) async fn delete_long_revoked(tx: &mut Tx, now: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM api_keys WHERE id IN
           (SELECT id FROM api_keys WHERE revoked_at_ms IS NOT NULL AND revoked_at_ms <= $1 LIMIT $2)",
    )
    .bind(now.plus_ms(-REVOKED_LISTED_MS).ms())
    .bind(STEP)
    .execute(&mut **tx)
    .await
    .map(drop)
}

fn is_well_formed(key: &str) -> bool {
    let Some(rest) = key.strip_prefix(PREFIX) else {
        return false;
    };
    rest.len() == SECRET + CHECKSUM
        && rest.bytes().all(|b| b.is_ascii_alphanumeric())
        && checksum(&rest[..SECRET]) == rest[SECRET..]
}

/// Six hexadecimal digits: finds typing errors and cut-off keys, and is no secret.
fn checksum(secret: &str) -> String {
    hex(&Sha256::digest(secret)[..CHECKSUM / 2])
}

fn hash(key: &str) -> String {
    hex(&Sha256::digest(key))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Site, count};
    use super::*;
    use crate::model::Role;

    async fn site() -> Site {
        let site = Site::open().await;
        site.workspace("acme").await;
        site.workspace("globex").await;
        site.user(
            "ada@example.com",
            false,
            &[("acme", Role::Editor), ("globex", Role::Viewer)],
        )
        .await;
        site
    }

    async fn create(site: &Site, email: &str, workspace: &str) -> Result<CreatedKey, Error> {
        let new = NewKey {
            email,
            workspace: &workspace.into(),
            name: "ci",
            expires_at: None,
        };
        site.identity.create_key(&Actor::Cli, new).await
    }

    #[tokio::test]
    async fn a_key_acts_as_its_user_in_its_workspace_and_is_stored_hashed() {
        let site = site().await;
        let made = create(&site, "Ada@example.com", "acme").await.unwrap();
        assert!(
            made.key.starts_with("tk_") && made.key.len() == 52,
            "{}",
            made.key.len()
        );
        let caller = site.identity.caller_of_key(&made.key).await.unwrap().unwrap();
        assert_eq!(
            caller.via,
            Via::Key {
                id: made.id.clone(),
                workspace: "acme".into()
            }
        );
        assert_eq!(caller.me().memberships.len(), 1);
        assert_eq!(caller.me().selected_workspace, Some("acme".into()));
        assert!(caller.may_call_models(&"acme".into()).is_ok());
        assert!(!caller.belongs_to(&"globex".into()));
        for table in [
            "SELECT hash || hint || name FROM api_keys",
            "SELECT after FROM audit_log",
        ] {
            let (text,): (String,) = sqlx::query_as(table).fetch_one(site.store.read()).await.unwrap();
            assert!(!text.contains(&made.key[8..]), "{table}");
        }
    }

    #[tokio::test]
    async fn what_is_no_key_is_none() {
        let site = site().await;
        let key = create(&site, "ada@example.com", "acme").await.unwrap().key;
        site.store.close().await;
        let mut wrong = key.clone();
        wrong.replace_range(10..11, if &key[10..11] == "a" { "b" } else { "a" });
        let long = format!("tk_{}", "x".repeat(4000));
        for odd in [
            "",
            "tk_",
            "tk_'--",
            "x",
            &long,
            &wrong,
            &key[..51],
            &format!("{key}0"),
            &key[3..],
            "tk_\u{fc}",
        ] {
            assert_eq!(
                site.identity.caller_of_key(odd).await,
                Ok(None),
                "no read of the database for {odd}"
            );
        }
        assert!(site.identity.caller_of_key(&key).await.is_err());
    }

    #[tokio::test]
    async fn expired_revoked_and_orphaned_keys_are_none() {
        let site = site().await;
        let expires_at = Some(site.clock_now().plus_ms(1_000));
        let new = NewKey {
            email: "ada@example.com",
            workspace: &"acme".into(),
            name: "ci",
            expires_at,
        };
        let short = site.identity.create_key(&Actor::Cli, new).await.unwrap();
        let revoked = create(&site, "ada@example.com", "acme").await.unwrap();
        let orphan = create(&site, "ada@example.com", "acme").await.unwrap();
        let lookup = async |key: &CreatedKey| site.identity.caller_of_key(&key.key).await.unwrap();
        for key in [&short, &revoked, &orphan] {
            assert!(lookup(key).await.is_some());
        }
        site.clock.advance_ms(1_000);
        assert_eq!(lookup(&short).await, None);
        site.identity
            .revoke_key(&Actor::Cli, &revoked.id, None)
            .await
            .unwrap();
        assert_eq!(lookup(&revoked).await, None);
        site.run("DELETE FROM memberships").await;
        let without = lookup(&orphan).await.unwrap();
        assert!(!without.belongs_to(&"acme".into()) && without.may_call_models(&"acme".into()).is_err());
        site.run("UPDATE users SET removed_at_ms = 1").await;
        assert_eq!(lookup(&orphan).await, None);
    }

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
        let new = NewKey {
            email: "ada@example.com",
            workspace: &"acme".into(),
            name: " ",
            expires_at: None,
        };
        assert_eq!(
            site.identity
                .create_key(&Actor::Cli, new)
                .await
                .err()
                .unwrap()
                .status(),
            422
        );
        assert_eq!(count(&site.store, "SELECT COUNT(*) FROM audit_log").await, 2);
    }

    #[tokio::test]
    async fn one_makes_keys_for_oneself_where_one_may_call_models() {
        let site = site().await;
        let key = create(&site, "ada@example.com", "acme").await.unwrap().key;
        let mut ada = site.identity.caller_of_key(&key).await.unwrap().unwrap();
        let own = async |caller: &Caller, workspace: &str| {
            site.identity
                .create_own_key(caller, &workspace.into(), "mine")
                .await
                .map_err(|e| e.status())
        };
        assert_eq!(own(&ada, "acme").await.err(), Some(403));
        ada.via = Via::Session { selected: None };
        ada.memberships.push(crate::model::Membership {
            workspace: "globex".into(),
            role: Role::Viewer,
        });
        assert!(own(&ada, "acme").await.is_ok());
        assert_eq!(own(&ada, "globex").await.err(), Some(403));
        assert_eq!(own(&ada, "hooli").await.err(), Some(404));
    }

    #[tokio::test]
    async fn keys_are_listed_newest_first_and_revoked_by_their_owner() {
        let site = site().await;
        let eve = site
            .user("eve@example.com", false, &[("acme", Role::Editor)])
            .await;
        let mut ids = Vec::new();
        for email in ["ada@example.com", "eve@example.com", "ada@example.com"] {
            site.clock.advance_ms(1);
            ids.insert(0, create(&site, email, "acme").await.unwrap().id);
        }
        let list = async |of: Option<&UserId>, before: Option<&str>, limit| {
            let rows = site.identity.list_keys(of, before, limit).await.unwrap();
            rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
        };
        assert_eq!(list(None, None, 10).await, ids);
        assert_eq!(list(None, Some(&ids[0]), 1).await, ids[1..2]);
        assert_eq!(list(Some(&eve), None, 10).await, ids[1..2]);

        let revoke = async |id: &str| {
            site.identity
                .revoke_key(&Actor::Cli, id, Some(&eve))
                .await
                .map_err(|e| e.status())
        };
        assert_eq!(revoke(&ids[0]).await, Err(404), "another's");
        assert_eq!(revoke("key_none").await, Err(404));
        assert_eq!(revoke(&ids[1]).await, Ok(()));
        assert_eq!(revoke(&ids[1]).await, Ok(()));
        assert_eq!(
            count(
                &site.store,
                "SELECT COUNT(*) FROM audit_log WHERE action = 'key.revoke'"
            )
            .await,
            1
        );
        site.clock.advance_ms(REVOKED_LISTED_MS);
        site.identity.tidy().await.unwrap();
        assert_eq!(list(Some(&eve), None, 10).await, [""; 0]);
        assert_eq!(list(None, None, 10).await.len(), 2);
    }

    #[tokio::test]
    async fn keys_a_user_are_bounded() {
        let site = site().await;
        for _ in 0..KEYS_A_USER {
            create(&site, "ada@example.com", "acme").await.unwrap();
        }
        assert_eq!(
            create(&site, "ada@example.com", "acme")
                .await
                .err()
                .unwrap()
                .status(),
            409
        );
        site.run("UPDATE api_keys SET revoked_at_ms = 1 WHERE id IN (SELECT id FROM api_keys LIMIT 1)")
            .await;
        create(&site, "ada@example.com", "acme").await.unwrap();
    }
}
