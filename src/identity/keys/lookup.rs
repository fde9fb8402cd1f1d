//! Who a key acts as.

use super::cache::Found;
use super::form::{hash, is_well_formed};
use crate::identity::sign_in::membership;
use crate::identity::{Caller, Identity, Via};
use crate::model::{Error, Timestamp};

type CallerColumns = (String, String, Option<i64>, Option<i64>, String, String, i64, Option<String>);

impl Identity {
    /// Who a key acts as; none where it isn't one, is revoked or expired, or its user was removed.
    pub async fn caller_of_key(&self, key: &str) -> Result<Option<Caller>, Error> {
        if !is_well_formed(key) {
            return Ok(None);
        }
        let (now, hash) = (self.clock.now(), hash(key));
        let known = self.keys_in_use.get(&hash, now);
        let found = match known {
            Ok(found) => found,
            Err(unknown) => {
                let Some(found) = self.look_up_key(&hash, now).await? else { return Ok(None) };
                self.keys_in_use.put(hash, found.clone(), now, unknown);
                found
            }
        };
        if let Via::Key { id, .. } = &found.caller.via {
            self.seen.key(id, found.last_used, now);
        }
        Ok(Some(found.caller))
    }

    async fn look_up_key(&self, hash: &str, now: Timestamp) -> Result<Option<Found>, Error> {
        let row: Option<CallerColumns> = sqlx::query_as(
            "SELECT k.id, k.workspace_id, k.last_used_at_ms, k.expires_at_ms, u.id, u.email, u.admin, m.role
             FROM api_keys k JOIN users u ON u.id = k.user_id
             LEFT JOIN memberships m ON m.user_id = k.user_id AND m.workspace_id = k.workspace_id
             WHERE k.hash = $1 AND k.revoked_at_ms IS NULL AND (k.expires_at_ms IS NULL OR k.expires_at_ms > $2)
               AND u.removed_at_ms IS NULL",
        )
        .bind(hash.to_owned())
        .bind(now.ms())
        .fetch_optional(self.store.read())
        .await?;
        let Some((id, workspace, last_used_ms, expires_ms, user, email, admin, role)) = row else {
            return Ok(None);
        };
        let caller = Caller {
            user: user.into(),
            email,
            admin: admin != 0,
            memberships: membership(Some(workspace.clone()), role).into_iter().collect(),
            via: Via::Key { id, workspace: workspace.into() },
        };
        let (last_used, expires_at) = (last_used_ms.map(Timestamp), expires_ms.map(Timestamp));
        Ok(Some(Found { caller, last_used, expires_at }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{create, site};
    use super::super::{CreatedKey, NewKey, form};
    use super::*;
    use crate::audit::Actor;

    #[tokio::test]
    async fn a_key_acts_as_its_user_in_its_workspace_and_is_stored_hashed() {
        let site = site().await;
        let made = create(&site, "Ada@example.com", "acme").await.unwrap();
        assert!(made.key.starts_with("tk_") && made.key.len() == 52, "{}", made.key.len());
        let caller = site.identity.caller_of_key(&made.key).await.unwrap().unwrap();
        assert_eq!(caller.via, Via::Key { id: made.id.clone(), workspace: "acme".into() });
        assert_eq!(caller.me().memberships.len(), 1);
        assert_eq!(caller.me().selected_workspace, Some("acme".into()));
        assert!(caller.may_call_models(&"acme".into()).is_ok());
        assert!(!caller.belongs_to(&"globex".into()));
        for table in ["SELECT hash || hint || name FROM api_keys", "SELECT after FROM audit_log"] {
            let (text,): (String,) = sqlx::query_as(table).fetch_one(site.store.read()).await.unwrap();
            assert!(!text.contains(&made.key[8..]), "{table}");
        }
    }

    #[tokio::test]
    async fn what_is_no_key_is_none() {
        let site = site().await;
        let key = create(&site, "ada@example.com", "acme").await.unwrap().key;
        assert_eq!(site.identity.caller_of_key(&form::new_key()).await, Ok(None));
        site.store.close().await;
        assert_eq!(site.identity.caller_of_key(&key[..51]).await, Ok(None), "the database isn't asked");
        assert!(site.identity.caller_of_key(&key).await.is_err());
    }

    #[tokio::test]
    async fn expired_revoked_and_orphaned_keys_are_none() {
        let site = site().await;
        let expires_at = Some(site.clock_now().plus_ms(1_000));
        let new = NewKey { email: "ada@example.com", workspace: &"acme".into(), name: "ci", expires_at };
        let short = site.identity.create_key(&Actor::Cli, new).await.unwrap();
        let revoked = create(&site, "ada@example.com", "acme").await.unwrap();
        let orphan = create(&site, "ada@example.com", "acme").await.unwrap();
        let lookup = async |key: &CreatedKey| site.identity.caller_of_key(&key.key).await.unwrap();
        for key in [&short, &revoked, &orphan] {
            assert!(lookup(key).await.is_some());
        }
        site.clock.advance_ms(1_000);
        assert_eq!(lookup(&short).await, None);
        site.identity.revoke_key(&Actor::Cli, &revoked.id, None).await.unwrap();
        assert_eq!(lookup(&revoked).await, None);
        site.run("DELETE FROM memberships").await;
        site.clock.advance_ms(500);
        let without = lookup(&orphan).await.unwrap();
        assert!(!without.belongs_to(&"acme".into()) && without.may_call_models(&"acme".into()).is_err());
        site.run("UPDATE users SET removed_at_ms = 1").await;
        site.clock.advance_ms(500);
        assert_eq!(lookup(&orphan).await, None);
    }

    #[tokio::test]
    async fn a_key_in_use_costs_no_read() {
        let site = site().await;
        let expires_at = Some(site.clock_now().plus_ms(300));
        let new = NewKey { email: "ada@example.com", workspace: &"acme".into(), name: "ci", expires_at };
        let short = site.identity.create_key(&Actor::Cli, new).await.unwrap().key;
        let hot = create(&site, "ada@example.com", "acme").await.unwrap().key;
        let lookup = async |key: &str| site.identity.caller_of_key(key).await.map(|found| found.is_some());
        assert_eq!((lookup(&hot).await, lookup(&short).await), (Ok(true), Ok(true)));
        site.store.close().await;
        site.clock.advance_ms(299);
        assert_eq!((lookup(&hot).await, lookup(&short).await), (Ok(true), Ok(true)), "no database is there");
        site.clock.advance_ms(1);
        assert_eq!(lookup(&hot).await, Ok(true));
        assert_ne!(lookup(&short).await, Ok(true), "expired");
        site.clock.advance_ms(200);
        assert!(lookup(&hot).await.is_err(), "half a second later it is read again");
    }
}
