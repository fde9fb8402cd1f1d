use super::{Done, Positions, finish, next_position, plain, platform_must_exist};
use crate::audit::Actor;
use crate::model::Error;
use crate::model::providers::ModelSettings;
use crate::providers::Pool;
use crate::providers::records::{Settings, model_settings};
use crate::store::{Tx, to_i64, to_u64};

/// What is to be different of a model; what is none stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelChange {
    pub alias: Option<String>,
    /// Some of none makes the model unlimited.
    pub rpm: Option<Option<u64>>,
    pub rpd: Option<Option<u64>>,
    pub tpm: Option<Option<u64>>,
    pub tpd: Option<Option<u64>>,
    pub priority: Option<u64>,
}

impl ModelChange {
    fn onto(self, now: &ModelSettings) -> ModelSettings {
        ModelSettings {
            alias: self.alias.unwrap_or_else(|| now.alias.clone()),
            rpm: self.rpm.unwrap_or(now.rpm),
            rpd: self.rpd.unwrap_or(now.rpd),
            tpm: self.tpm.unwrap_or(now.tpm),
            tpd: self.tpd.unwrap_or(now.tpd),
            priority: self.priority.unwrap_or(now.priority),
        }
    }
}

impl From<ModelSettings> for ModelChange {
    fn from(all: ModelSettings) -> Self {
        ModelChange {
            alias: Some(all.alias),
            rpm: Some(all.rpm),
            rpd: Some(all.rpd),
            tpm: Some(all.tpm),
            tpd: Some(all.tpd),
            priority: Some(all.priority),
        }
    }
}

struct Stored {
    settings: ModelSettings,
    position: i64,
    managed: bool,
}

impl Pool {
    /// # Errors
    /// `Invalid` names the field; `NotFound`; `Conflict` where the platform has the model.
    pub async fn add_model(
        &self,
        actor: &Actor,
        platform: &str,
        model: &str,
        settings: ModelSettings,
    ) -> Result<Done, Error> {
        settings.check(model)?;
        if !plain(platform) {
            return Err(Error::no_such("platform", ""));
        }
        let mut tx = self.store().begin().await?;
        platform_must_exist(&mut tx, platform).await?;
        let position = next_position(&mut tx, Positions::Models(platform)).await?;
        let [rpm, rpd, tpm, tpd] = limits(&settings);
        let added = sqlx::query(
            "INSERT INTO platform_models (platform_id, model_id, alias, rpm, rpd, tpm, tpd, priority, position)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (platform_id, model_id) DO NOTHING",
        )
        .bind(platform.to_owned())
        .bind(model.to_owned())
        .bind(settings.alias.clone())
        .bind(rpm)
        .bind(rpd)
        .bind(tpm)
        .bind(tpd)
        .bind(to_i64(settings.priority))
        .bind(position)
        .execute(&mut *tx)
        .await?;
        if added.rows_affected() == 0 {
            return Err(Error::Conflict(format!(
                "the platform \"{platform}\" has the model \"{model}\" already; edit that one"
            )));
        }
        let after = Stored { settings, position, managed: false }.shown(platform, model);
        finish(self, tx, actor, "platform-model.add", None, Some(after)).await
    }

    /// Changes limits, alias or priority; the next request obeys them, with what was counted kept.
    pub async fn edit_model(
        &self,
        actor: &Actor,
        platform: &str,
        model: &str,
        change: ModelChange,
    ) -> Result<Done, Error> {
        let mut tx = self.store().begin().await?;
        let before = stored(&mut tx, platform, model).await?;
        let settings = change.onto(&before.settings);
        settings.check(model)?;
        let [rpm, rpd, tpm, tpd] = limits(&settings);
        sqlx::query(
            "UPDATE platform_models SET alias = $1, rpm = $2, rpd = $3, tpm = $4, tpd = $5, priority = $6
             WHERE platform_id = $7 AND model_id = $8",
        )
        .bind(settings.alias.clone())
        .bind(rpm)
        .bind(rpd)
        .bind(tpm)
        .bind(tpd)
        .bind(to_i64(settings.priority))
        .bind(platform.to_owned())
        .bind(model.to_owned())
        .execute(&mut *tx)
        .await?;
        let shown = before.shown(platform, model);
        let after = Stored { settings, ..before }.shown(platform, model);
        finish(self, tx, actor, "platform-model.change", Some(shown), Some(after)).await
    }

    pub async fn remove_model(&self, actor: &Actor, platform: &str, model: &str) -> Result<Done, Error> {
        let mut tx = self.store().begin().await?;
        let before = stored(&mut tx, platform, model).await?.shown(platform, model);
        sqlx::query("DELETE FROM platform_models WHERE platform_id = $1 AND model_id = $2")
            .bind(platform.to_owned())
            .bind(model.to_owned())
            .execute(&mut *tx)
            .await?;
        finish(self, tx, actor, "platform-model.remove", Some(before), None).await
    }
}

impl Stored {
    fn shown(&self, platform: &str, model: &str) -> Settings {
        let Stored { settings, position, managed } = self;
        let priority = to_i64(settings.priority);
        model_settings(platform, model, &settings.alias, limits(settings), priority, *position, *managed)
    }
}

async fn stored(tx: &mut Tx, platform: &str, model: &str) -> Result<Stored, Error> {
    type Columns = (String, Option<i64>, Option<i64>, Option<i64>, Option<i64>, i64, i64, i64);
    if !plain(platform) || !plain(model) {
        return Err(Error::no_such("model", ""));
    }
    let row: Option<Columns> = sqlx::query_as(
        "SELECT alias, rpm, rpd, tpm, tpd, priority, position, managed FROM platform_models
         WHERE platform_id = $1 AND model_id = $2",
    )
    .bind(platform.to_owned())
    .bind(model.to_owned())
    .fetch_optional(&mut **tx)
    .await?;
    let (alias, rpm, rpd, tpm, tpd, priority, position, managed) =
        row.ok_or_else(|| Error::no_such("model", model))?;
    let limit = |stored: Option<i64>| stored.map(to_u64);
    let settings = ModelSettings {
        alias,
        rpm: limit(rpm),
        rpd: limit(rpd),
        tpm: limit(tpm),
        tpd: limit(tpd),
        priority: to_u64(priority),
    };
    Ok(Stored { settings, position, managed: managed != 0 })
}

fn limits(settings: &ModelSettings) -> [Option<i64>; 4] {
    settings.limits().map(|limit| limit.map(to_i64))
}
