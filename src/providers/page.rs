//! What the providers' page shows: every platform, key and model that is stored, those included that are
//! disabled and so no candidates, each with its counts.

use sqlx::FromRow;

use super::catalog::{Catalog, Origin};
use super::cooldown::UNTIL_CHANGED;
use super::pool::Pool;
use super::quotas::Standing;
use super::{CandidateId, Kind, Target};
use crate::model::Error;
use crate::model::providers::{
    CandidateState, CooldownNote, KeyRow, ModelRow, ModelSettings, PlatformRow, PoolSource, ProvidersPage,
    Quota, StatedNote,
};
use crate::store::to_u64;

#[derive(FromRow)]
struct ModelColumns {
    platform_id: String,
    model_id: String,
    alias: String,
    rpm: Option<i64>,
    rpd: Option<i64>,
    tpm: Option<i64>,
    tpd: Option<i64>,
    priority: i64,
    managed: i64,
}

impl Pool {
    /// The page as it is now.
    pub async fn page(&self) -> Result<ProvidersPage, Error> {
        let now = self.clock().now();
        let catalog = self.catalog();
        let mut platforms = self.stored().await?;
        let from = match catalog.origin {
            Origin::Stored if platforms.is_empty() => PoolSource::Nothing,
            Origin::Stored => PoolSource::Stored,
            Origin::Environment => PoolSource::Environment,
            Origin::Demo => PoolSource::Demo,
        };
        let mut candidates: Vec<CandidateState> = platforms
            .iter()
            .flat_map(|platform| self.states(platform, self.config().cap(&platform.id)))
            .collect();
        if matches!(from, PoolSource::Environment | PoolSource::Demo) {
            let only = fixed(&catalog);
            candidates.extend(only.iter().flat_map(|row| self.states(row, self.config().cap(&row.id))));
            platforms.splice(..0, only);
        }
        Ok(ProvidersPage {
            now,
            from,
            platforms,
            candidates,
            unserved: self.unservable().recent(now),
            done: None,
        })
    }

    async fn stored(&self) -> Result<Vec<PlatformRow>, Error> {
        let read = || self.store().read();
        let platforms: Vec<(String, String, i64)> =
            sqlx::query_as("SELECT id, base_url, managed FROM platforms ORDER BY position, id")
                .fetch_all(read())
                .await?;
        let keys: Vec<(String, String, String, i64, i64)> = sqlx::query_as(
            "SELECT platform_id, id, label, enabled, managed FROM platform_keys ORDER BY position, id",
        )
        .fetch_all(read())
        .await?;
        let models: Vec<ModelColumns> = sqlx::query_as(
            "SELECT platform_id, model_id, alias, rpm, rpd, tpm, tpd, priority, managed
             FROM platform_models ORDER BY position, model_id",
        )
        .fetch_all(read())
        .await?;
        let mut rows: Vec<PlatformRow> = platforms
            .into_iter()
            .map(|(id, base_url, managed)| PlatformRow {
                id,
                base_url,
                fixed: false,
                managed: managed != 0,
                keys: Vec::new(),
                models: Vec::new(),
            })
            .collect();
        for (platform, id, label, enabled, managed) in keys {
            if let Some(row) = rows.iter_mut().find(|row| row.id == platform) {
                row.keys.push(KeyRow { id, label, enabled: enabled != 0, managed: managed != 0 });
            }
        }
        for model in models {
            if let Some(row) = rows.iter_mut().find(|row| row.id == model.platform_id) {
                row.models.push(model.into());
            }
        }
        Ok(rows)
    }

    fn states(&self, platform: &PlatformRow, cap: Option<u64>) -> Vec<CandidateState> {
        let pairs =
            platform.keys.iter().flat_map(|key| platform.models.iter().map(move |model| (key, model)));
        pairs
            .map(|(key, model)| {
                let id = CandidateId::new(&platform.id, &model.id, &key.id);
                let standing = self.quotas().status(&id);
                let tested = self.tested(&id);
                CandidateState { tested, ..state(&id, &model.settings, cap, standing.as_ref()) }
            })
            .collect()
    }
}

/// The limits are those that are stored: of a disabled key nobody else keeps them.
fn state(
    id: &CandidateId,
    settings: &ModelSettings,
    cap: Option<u64>,
    standing: Option<&Standing>,
) -> CandidateState {
    let quota = |kind: Kind, limit: Option<u64>| {
        let gauge = standing.and_then(|standing| standing.gauges.iter().find(|gauge| gauge.kind == kind));
        gauge.map_or(Quota { limit, ..Quota::default() }, |gauge| Quota {
            used: gauge.used,
            in_flight: gauge.in_flight,
            limit,
        })
    };
    let cooldown = standing.and_then(|standing| standing.cooldown);
    let stated = standing.map(|standing| standing.stated).unwrap_or_default();
    CandidateState {
        platform: id.platform.to_string(),
        model: id.model.to_string(),
        key: id.key.to_string(),
        rpm: quota(Kind::Rpm, settings.rpm),
        rpd: quota(Kind::Rpd, settings.rpd),
        tpm: quota(Kind::Tpm, settings.tpm),
        tpd: quota(Kind::Tpd, settings.tpd),
        day: quota(Kind::ProviderDay, cap),
        cooldown: cooldown.map(|cooldown| CooldownNote {
            until: (cooldown.until < UNTIL_CHANGED).then_some(cooldown.until),
            reason: cooldown.reason.sentence(),
        }),
        stated: StatedNote { requests: stated.requests, tokens: stated.tokens },
        tested: None,
    }
}

/// The one candidate that no table has.
fn fixed(catalog: &Catalog) -> Vec<PlatformRow> {
    let row = |candidate: &std::sync::Arc<super::catalog::Candidate>| PlatformRow {
        id: candidate.id.platform.to_string(),
        base_url: match &candidate.target {
            Target::Provider { base_url, .. } => base_url.to_string(),
            Target::Demo => String::new(),
        },
        fixed: true,
        managed: false,
        keys: vec![KeyRow {
            id: candidate.id.key.to_string(),
            label: candidate.key_label.to_string(),
            enabled: true,
            managed: false,
        }],
        models: vec![ModelRow {
            id: candidate.id.model.to_string(),
            settings: ModelSettings {
                alias: super::DEFAULT_ALIAS.to_owned(),
                rpm: None,
                rpd: None,
                tpm: None,
                tpd: None,
                priority: 1,
            },
            managed: false,
        }],
    };
    catalog.candidates.iter().map(row).collect()
}

impl From<ModelColumns> for ModelRow {
    fn from(row: ModelColumns) -> Self {
        let limit = |stored: Option<i64>| stored.map(to_u64);
        ModelRow {
            id: row.model_id,
            settings: ModelSettings {
                alias: row.alias,
                rpm: limit(row.rpm),
                rpd: limit(row.rpd),
                tpm: limit(row.tpm),
                tpd: limit(row.tpd),
                priority: to_u64(row.priority),
            },
            managed: row.managed != 0,
        }
    }
}
