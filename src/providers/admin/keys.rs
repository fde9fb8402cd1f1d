use super::{Done, Positions, finish, next_position, plain, platform_must_exist};
use crate::audit::Actor;
use crate::model::Error;
use crate::model::ids::{NAME_MAX, is_name};
use crate::providers::Pool;
use crate::providers::records::{SECRET_MAX, Settings, key_settings, new_key_id, sendable};
use crate::store::Tx;

/// A key to be added.
#[derive(Clone, Copy)]
pub struct NewKey<'a> {
    pub platform: &'a str,
    /// Tells the platform's keys apart.
    pub label: &'a str,
    pub secret: &'a str,
    pub enabled: bool,
}

struct Stored {
    platform: String,
    label: String,
    enabled: bool,
    position: i64,
    managed: bool,
}

impl Pool {
    /// Adds a key, sealed. Answers its id too.
    ///
    /// # Errors
    /// `Invalid` names the field, never what it held; `NotFound`; `Conflict` where the label is taken.
    pub async fn add_key(&self, actor: &Actor, new: NewKey<'_>) -> Result<(String, Done), Error> {
        let NewKey { platform, label, secret, enabled } = new;
        let label = label.trim();
        if !is_name(label) {
            return Err(Error::Invalid(format!(
                "label has to be a text of 1 to {NAME_MAX} characters that tells the platform's keys apart"
            )));
        }
        let secret = checked(secret)?;
        if !plain(platform) {
            return Err(Error::no_such("platform", ""));
        }
        let id = new_key_id();
        let sealed = self.secret().seal(&id, secret);
        let mut tx = self.store().begin().await?;
        platform_must_exist(&mut tx, platform).await?;
        let position = next_position(&mut tx, Positions::Keys(platform)).await?;
        let added = sqlx::query(
            "INSERT INTO platform_keys (id, platform_id, label, sealed, enabled, position)
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (platform_id, label) DO NOTHING",
        )
        .bind(id.clone())
        .bind(platform.to_owned())
        .bind(label.to_owned())
        .bind(sealed)
        .bind(i64::from(enabled))
        .bind(position)
        .execute(&mut *tx)
        .await?;
        if added.rows_affected() == 0 {
            return Err(Error::Conflict(format!(
                "the platform \"{platform}\" has a key \"{label}\" already; choose another label, or rotate that key"
            )));
        }
        let after = key_settings(platform, label, enabled, position, false);
        let done = finish(self, tx, actor, "platform-key.add", None, Some(after)).await?;
        Ok((id, done))
    }

    /// Puts another secret in the place of a key's, whose usage and windows it keeps. Its cooldowns end.
    pub async fn rotate_key(&self, actor: &Actor, id: &str, secret: &str) -> Result<Done, Error> {
        let secret = checked(secret)?;
        let mut tx = self.store().begin().await?;
        let stored = stored(&mut tx, id).await?;
        sqlx::query("UPDATE platform_keys SET sealed = $1 WHERE id = $2")
            .bind(self.secret().seal(id, secret))
            .bind(id.to_owned())
            .execute(&mut *tx)
            .await?;
        let before = stored.settings();
        let mut after = before.clone();
        after.insert("secret".into(), "changed".into());
        let done = finish(self, tx, actor, "platform-key.change", Some(before), Some(after)).await?;
        // Reading the pool anew sees to it where the key is in use; a disabled one must not come back benched.
        self.quotas().clear_key(&stored.platform, id);
        Ok(done)
    }

    /// Takes a key into use, or out of it.
    pub async fn enable_key(&self, actor: &Actor, id: &str, enabled: bool) -> Result<Done, Error> {
        let mut tx = self.store().begin().await?;
        let stored = stored(&mut tx, id).await?;
        sqlx::query("UPDATE platform_keys SET enabled = $1 WHERE id = $2")
            .bind(i64::from(enabled))
            .bind(id.to_owned())
            .execute(&mut *tx)
            .await?;
        let before = stored.settings();
        let after = Stored { enabled, ..stored }.settings();
        finish(self, tx, actor, "platform-key.change", Some(before), Some(after)).await
    }

    pub async fn remove_key(&self, actor: &Actor, id: &str) -> Result<Done, Error> {
        let mut tx = self.store().begin().await?;
        let stored = stored(&mut tx, id).await?;
        sqlx::query("DELETE FROM platform_keys WHERE id = $1").bind(id.to_owned()).execute(&mut *tx).await?;
        finish(self, tx, actor, "platform-key.remove", Some(stored.settings()), None).await
    }
}

impl Stored {
    fn settings(&self) -> Settings {
        key_settings(&self.platform, &self.label, self.enabled, self.position, self.managed)
    }
}

async fn stored(tx: &mut Tx, id: &str) -> Result<Stored, Error> {
    if !plain(id) {
        return Err(Error::no_such("provider key", ""));
    }
    let row: Option<(String, String, i64, i64, i64)> = sqlx::query_as(
        "SELECT platform_id, label, enabled, position, managed FROM platform_keys WHERE id = $1",
    )
    .bind(id.to_owned())
    .fetch_optional(&mut **tx)
    .await?;
    let (platform, label, enabled, position, managed) =
        row.ok_or_else(|| Error::no_such("provider key", id))?;
    Ok(Stored { platform, label, enabled: enabled != 0, position, managed: managed != 0 })
}

fn checked(secret: &str) -> Result<&str, Error> {
    sendable(secret).ok_or_else(|| {
        Error::Invalid(format!(
            "secret has to be the provider's key: 1 to {SECRET_MAX} printable ASCII characters without blanks"
        ))
    })
}
