use super::{Done, Positions, finish, next_position, plain};
use crate::audit::Actor;
use crate::model::Error;
use crate::model::ids::is_id;
use crate::providers::Pool;
use crate::providers::records::{Settings, base_url, key_settings, model_settings, platform_settings};
use crate::store::Tx;

impl Pool {
    /// # Errors
    /// `Invalid` names the field; `Conflict` where there is one of this id.
    pub async fn add_platform(&self, actor: &Actor, id: &str, url: &str) -> Result<Done, Error> {
        if !is_id(id) {
            return Err(Error::Invalid(
                "id takes letters, digits and . _ -, 128 at most, beginning with a letter or digit".into(),
            ));
        }
        let url = base_url(url.trim()).filter(|url| plain(url)).ok_or_else(|| {
            Error::Invalid(
                "base_url has to be an http or https URL such as https://openrouter.ai/api/v1, without a password, \
                 query or fragment"
                    .into(),
            )
        })?;
        let mut tx = self.store().begin().await?;
        let position = next_position(&mut tx, Positions::Platforms).await?;
        let added = sqlx::query(
            "INSERT INTO platforms (id, base_url, position) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING",
        )
        .bind(id.to_owned())
        .bind(url.clone())
        .bind(position)
        .execute(&mut *tx)
        .await?;
        if added.rows_affected() == 0 {
            return Err(Error::Conflict(format!("there is a platform \"{id}\" already; choose another id")));
        }
        let after = platform_settings(id, &url, position, false);
        finish(self, tx, actor, "platform.add", None, Some(after)).await
    }

    /// Removes a platform with its keys and models. What their calls counted stays until it is a day old.
    pub async fn remove_platform(&self, actor: &Actor, id: &str) -> Result<Done, Error> {
        if !is_id(id) {
            return Err(Error::no_such("platform", id));
        }
        let mut tx = self.store().begin().await?;
        let row: Option<(String, i64, i64)> =
            sqlx::query_as("SELECT base_url, position, managed FROM platforms WHERE id = $1")
                .bind(id.to_owned())
                .fetch_optional(&mut *tx)
                .await?;
        let Some((url, position, managed)) = row else {
            return Err(Error::no_such("platform", id));
        };
        for (action, part) in parts(&mut tx, id).await? {
            super::enter(self, &mut tx, actor, action, Some(part), None).await?;
        }
        for statement in [
            "DELETE FROM platform_models WHERE platform_id = $1",
            "DELETE FROM platform_keys WHERE platform_id = $1",
            "DELETE FROM platforms WHERE id = $1",
        ] {
            sqlx::query(statement).bind(id.to_owned()).execute(&mut *tx).await?;
        }
        let before = platform_settings(id, &url, position, managed != 0);
        finish(self, tx, actor, "platform.remove", Some(before), None).await
    }
}

/// What goes with a platform: an entry for each.
async fn parts(tx: &mut Tx, platform: &str) -> Result<Vec<(&'static str, Settings)>, sqlx::Error> {
    type Columns = (String, String, Option<i64>, Option<i64>, Option<i64>, Option<i64>, i64, i64, i64);
    let keys: Vec<(String, i64, i64, i64)> = sqlx::query_as(
        "SELECT label, enabled, position, managed FROM platform_keys WHERE platform_id = $1 ORDER BY position, id",
    )
    .bind(platform.to_owned())
    .fetch_all(&mut **tx)
    .await?;
    let models: Vec<Columns> = sqlx::query_as(
        "SELECT model_id, alias, rpm, rpd, tpm, tpd, priority, position, managed
         FROM platform_models WHERE platform_id = $1 ORDER BY position, model_id",
    )
    .bind(platform.to_owned())
    .fetch_all(&mut **tx)
    .await?;
    let keys = keys.into_iter().map(|(label, enabled, position, managed)| {
        ("platform-key.remove", key_settings(platform, &label, enabled != 0, position, managed != 0))
    });
    let models = models.into_iter().map(|(id, alias, rpm, rpd, tpm, tpd, priority, position, managed)| {
        let limits = [rpm, rpd, tpm, tpd];
        let settings = model_settings(platform, &id, &alias, limits, priority, position, managed != 0);
        ("platform-model.remove", settings)
    });
    Ok(keys.chain(models).collect())
}
