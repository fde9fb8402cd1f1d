//! The first platform admin: from the configuration, or by whoever holds the one-time set-up link.
//! All other users come from the directory file.

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::audit::{self, Actor, Change};
use crate::model::ids::normal_email;
use crate::model::{Error, UserId};
use crate::store::Tx;

use super::{Identity, check_new_password, end_sessions_of, new_user_id, random_text};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstAdmin {
    /// There is an admin already; what is configured is not looked at.
    Present,
    /// Made of what is configured.
    Created,
    /// Nobody yet: `/setup?token=…` makes one, until the server ends.
    SetUp { token: String },
}

impl Identity {
    /// To be called at start, with the e-mail address and password that are configured.
    pub async fn first_admin(&self, configured: Option<(&str, &str)>) -> Result<FirstAdmin, Error> {
        if self.has_admin().await? {
            return Ok(FirstAdmin::Present);
        }
        let Some((email, password)) = configured else {
            let token = random_text(43);
            *self.setup.lock() = Some(token.clone());
            return Ok(FirstAdmin::SetUp { token });
        };
        let made = self.create_admin(email, password).await?;
        Ok(if made { FirstAdmin::Created } else { FirstAdmin::Present })
    }

    /// Whether this is the token of the set-up link, and there still is something to set up.
    pub async fn may_set_up(&self, token: &str) -> Result<bool, Error> {
        Ok(self.is_setup_token(token) && !self.has_admin().await?)
    }

    /// Makes the first admin.
    ///
    /// # Errors
    /// Forbidden with any but the link's token, a conflict where there is an admin by now.
    pub async fn complete_set_up(&self, email: &str, password: &str, token: &str) -> Result<(), Error> {
        if !self.is_setup_token(token) {
            return Err(Error::Forbidden(
                "this set-up link is not valid; take the one that the server printed when it last started"
                    .into(),
            ));
        }
        let made = self.create_admin(email, password).await?;
        *self.setup.lock() = None;
        if made { Ok(()) } else { Err(Error::Conflict("there is an admin already; sign in instead".into())) }
    }

    async fn has_admin(&self) -> Result<bool, sqlx::Error> {
        let row: Option<(i64,)> =
            sqlx::query_as("SELECT 1 FROM users WHERE admin = 1 AND removed_at_ms IS NULL LIMIT 1")
                .fetch_optional(self.store.read())
                .await?;
        Ok(row.is_some())
    }

    /// Compares hashes, so that the time it takes tells nothing about the token.
    fn is_setup_token(&self, token: &str) -> bool {
        self.setup.lock().as_ref().is_some_and(|own| Sha256::digest(own) == Sha256::digest(token))
    }

    /// Whether one was made: only while there is none, which is looked up in the transaction.
    async fn create_admin(&self, email: &str, password: &str) -> Result<bool, Error> {
        let email = normal_email(email).ok_or_else(|| {
            Error::Invalid("email must be an e-mail address, such as ada@example.com".into())
        })?;
        check_new_password(password)?;
        let hash = self.passwords.hash(password.to_owned()).await?;

        let mut tx = self.store.begin().await?;
        let admin: Option<(i64,)> =
            sqlx::query_as("SELECT 1 FROM users WHERE admin = 1 AND removed_at_ms IS NULL LIMIT 1")
                .fetch_optional(&mut *tx)
                .await?;
        if admin.is_some() {
            return Ok(false);
        }
        let now = self.clock.now();
        let known: Option<(String,)> = sqlx::query_as("SELECT id FROM users WHERE email = $1")
            .bind(email.clone())
            .fetch_optional(&mut *tx)
            .await?;
        match &known {
            Some((id,)) => promote(&mut tx, &id.as_str().into(), hash).await?,
            None => {
                sqlx::query(
                    "INSERT INTO users (id, email, password_hash, admin, created_at_ms) VALUES ($1, $2, $3, 1, $4)",
                )
                .bind(new_user_id().as_str().to_owned())
                .bind(email.clone())
                .bind(hash)
                .bind(now.ms())
                .execute(&mut *tx)
                .await?;
            }
        }
        let change = Change {
            actor: &Actor::System,
            action: "user.add",
            workspace: None,
            before: known.map(|_| json!({ "email": email, "admin": false })),
            after: Some(json!({ "email": email, "admin": true })),
        };
        audit::append(&mut tx, now, change).await?;
        tx.commit().await?;
        Ok(true)
    }
}

/// A user who is known, removed perhaps, becomes the admin; no file owns them any more.
async fn promote(tx: &mut Tx, user: &UserId, hash: String) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE users SET password_hash = $2, admin = 1, managed = 0, removed_at_ms = NULL WHERE id = $1",
    )
    .bind(user.as_str().to_owned())
    .bind(hash)
    .execute(&mut **tx)
    .await?;
    end_sessions_of(tx, user).await
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PASSWORD, Site, count};
    use super::*;

    const ADMINS: &str = "SELECT COUNT(*) FROM users WHERE admin = 1 AND removed_at_ms IS NULL";

    #[tokio::test]
    async fn the_configured_admin_is_made_once() {
        let site = Site::open().await;
        let first = async |email| site.identity.first_admin(Some((email, PASSWORD))).await;
        assert_eq!(first("First@Example.com").await, Ok(FirstAdmin::Created));
        assert_eq!(first("second@example.com").await, Ok(FirstAdmin::Present));
        assert_eq!(site.identity.first_admin(None).await, Ok(FirstAdmin::Present));
        let (email, actor): (String, String) =
            sqlx::query_as("SELECT u.email, a.actor FROM users u, audit_log a")
                .fetch_one(site.store.read())
                .await
                .unwrap();
        assert_eq!((email.as_str(), actor.as_str()), ("first@example.com", "system"));
    }

    #[tokio::test]
    async fn a_removed_user_can_be_made_the_first_admin() {
        let site = Site::open().await;
        site.user("ada@example.com", true, &[]).await;
        site.run("UPDATE users SET removed_at_ms = 1").await;
        assert_eq!(
            site.identity.first_admin(Some(("ada@example.com", PASSWORD))).await,
            Ok(FirstAdmin::Created)
        );
        assert_eq!(count(&site.store, ADMINS).await, 1);
    }

    #[tokio::test]
    async fn the_set_up_link_makes_one_admin() {
        let site = Site::open().await;
        let Ok(FirstAdmin::SetUp { token }) = site.identity.first_admin(None).await else {
            panic!("a token")
        };
        let complete = async |email, password, token| {
            site.identity.complete_set_up(email, password, token).await.map_err(|e| e.status())
        };
        assert!(site.identity.may_set_up(&token).await.unwrap());
        assert!(!site.identity.may_set_up("").await.unwrap());
        assert_eq!(complete("ada@example.com", PASSWORD, "guess").await, Err(403));
        assert_eq!(complete("ada", PASSWORD, &token).await, Err(422));
        assert_eq!(complete("ada@example.com", "short", &token).await, Err(422));
        assert_eq!(count(&site.store, ADMINS).await, 0);
        let both = tokio::join!(
            complete("ada@example.com", PASSWORD, &token),
            complete("eve@example.com", PASSWORD, &token)
        );
        assert_eq!(count(&site.store, ADMINS).await, 1, "{both:?}");
        assert!(!site.identity.may_set_up(&token).await.unwrap());
        assert_eq!(complete("gil@example.com", PASSWORD, &token).await, Err(403));
    }

    #[tokio::test]
    async fn the_link_is_worth_nothing_once_there_is_an_admin_from_elsewhere() {
        let site = Site::open().await;
        let Ok(FirstAdmin::SetUp { token }) = site.identity.first_admin(None).await else {
            panic!("a token")
        };
        site.user("root@example.com", true, &[]).await;
        assert!(!site.identity.may_set_up(&token).await.unwrap());
        let error = site.identity.complete_set_up("ada@example.com", PASSWORD, &token).await.unwrap_err();
        assert_eq!(error.status(), 409);
    }
}
