//! Listing and revoking keys.

use serde_json::json;

use super::create::record;
use crate::audit::Actor;
use crate::identity::Identity;
use crate::model::{Error, KeyRow, Timestamp, UserId};
use crate::store::Tx;

/// A revoked key is listed for so long.
const REVOKED_LISTED_MS: i64 = 90 * 24 * 60 * 60_000;
const STEP: i64 = 200;
/// Sorts behind every id.
const BEHIND_ALL: &str = "key_z";

type KeyColumns = (String, String, String, String, String, i64, Option<i64>, Option<i64>, Option<i64>);

impl Identity {
    /// Newest first: the keys of a user, or of everyone. `before` is the id that the page before
    /// ended with.
    pub async fn list_keys(
        &self,
        of: Option<&UserId>,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<KeyRow>, Error> {
        let before =
            before.filter(|id| id.bytes().all(|b| b.is_ascii_graphic())).unwrap_or(BEHIND_ALL).to_owned();
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
            .map(|(id, hint, name, email, workspace, created, expires, used, revoked)| KeyRow {
                id,
                hint,
                name,
                email,
                workspace: workspace.into(),
                created_at: Timestamp(created),
                expires_at: expires.map(Timestamp),
                last_used_at: used.map(Timestamp),
                revoked_at: revoked.map(Timestamp),
            })
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
        record(&mut tx, now, actor, "key.revoke", &workspace.into(), Some(before), after).await?;
        tx.commit().await?;
        self.keys_in_use.forget_all();
        Ok(())
    }
}

/// Deletes some of the keys revoked long ago; the trail keeps what became of them.
pub(in crate::identity) async fn delete_long_revoked(tx: &mut Tx, now: Timestamp) -> Result<(), sqlx::Error> {
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

#[cfg(test)]
mod tests {
    use super::super::testing::{create, site};
    use super::*;
    use crate::identity::testing::count;
    use crate::model::Role;

    #[tokio::test]
    async fn keys_are_listed_newest_first_and_revoked_by_their_owner() {
        let site = site().await;
        let eve = site.user("eve@example.com", false, &[("acme", Role::Editor)]).await;
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
            site.identity.revoke_key(&Actor::Cli, id, Some(&eve)).await.map_err(|e| e.status())
        };
        assert_eq!(revoke(&ids[0]).await, Err(404), "another's");
        assert_eq!(revoke("key_none").await, Err(404));
        assert_eq!(revoke(&ids[1]).await, Ok(()));
        assert_eq!(revoke(&ids[1]).await, Ok(()));
        assert_eq!(count(&site.store, "SELECT COUNT(*) FROM audit_log WHERE action = 'key.revoke'").await, 1);
        site.clock.advance_ms(REVOKED_LISTED_MS);
        site.identity.tidy().await.unwrap();
        assert_eq!(list(Some(&eve), None, 10).await, [""; 0]);
        assert_eq!(list(None, None, 10).await.len(), 2);
    }
}
