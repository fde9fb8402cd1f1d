//! Which candidates there are and what they are called: the pool's tables, or the one model of the
//! environment, or the demo model.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sqlx::FromRow;

use super::book::{CandidateId, Limits};
use super::link::Target;
use super::{OpenError, SecretKey};
use crate::config::SingleModel;
use crate::model::answers::{DEMO_MODEL, DEMO_PLATFORM};
use crate::store::{Store, to_u64};

/// The alias that the three `/api` routes ask for.
pub const DEFAULT_ALIAS: &str = "default";
/// The key of the one model that the environment configures.
const ENVIRONMENT_KEY: &str = "environment";
const DEMO_KEY: &str = "built-in";
/// Requests per UTC day over all models of one key, where the environment doesn't say.
const DEFAULT_CAPS: [(&str, u64); 1] = [("OPENROUTER", 1000)];

/// What the environment says of providers.
#[derive(Debug, Clone, Default)]
pub struct PoolConfig {
    /// Used while no pool is applied.
    pub single: Option<SingleModel>,
    /// Whether the demo model answers where nothing else is configured.
    pub demo: bool,
    /// `PROVIDER_DAILY_REQUEST_CAP_<PLATFORM>` by what stands for `<PLATFORM>`; 0 disables.
    pub caps: HashMap<String, u64>,
}

impl PoolConfig {
    /// The provider-wide cap of a platform; none is unlimited.
    pub(super) fn cap(&self, platform: &str) -> Option<u64> {
        let name = cap_name(platform);
        let default = || DEFAULT_CAPS.iter().find(|(known, _)| *known == name).map(|(_, cap)| *cap);
        self.caps.get(&name).copied().or_else(default).filter(|cap| *cap > 0)
    }
}

/// A platform's id as the names of environment variables have it.
pub fn cap_name(platform: &str) -> String {
    platform.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// A model of a platform under one key.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub id: CandidateId,
    pub key_label: Arc<str>,
    pub target: Target,
    pub limits: Limits,
    /// The provider-wide cap of its key.
    pub cap: Option<u64>,
    /// Lower is tried first.
    pub priority: i64,
}

/// Something that can be asked for, as `GET /v1/models` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRow {
    /// An alias, or `PLATFORM/MODEL`.
    pub id: String,
    /// The platform; of an alias, the one that its first candidate has.
    pub owned_by: String,
}

/// Where the candidates come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// The pool's tables.
    #[default]
    Stored,
    Environment,
    Demo,
}

/// All candidates at one moment.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub origin: Origin,
    /// The pool's version that this was read from.
    pub version: i64,
    pub candidates: Vec<Arc<Candidate>>,
    /// How often the cooldown of a candidate was cleared, by whichever replica.
    pub clears: HashMap<CandidateId, i64>,
    names: HashMap<String, Vec<Arc<Candidate>>>,
    models: Vec<ModelRow>,
}

#[derive(FromRow)]
struct PoolRow {
    platform_id: String,
    base_url: String,
    model_id: String,
    alias: String,
    rpm: Option<i64>,
    rpd: Option<i64>,
    tpm: Option<i64>,
    tpd: Option<i64>,
    priority: i64,
    key_id: Option<String>,
    label: Option<String>,
    sealed: Option<String>,
}

/// Why the candidates could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error("the provider pool can't be read from the database: {0}")]
    Database(#[from] sqlx::Error),
    #[error(
        "the provider key \"{label}\" of the platform \"{platform}\" can't be opened: {error}; start with the \
         TOLLKEEPER_SECRET_KEY (or its file) that it was stored under, or apply the key again"
    )]
    Sealed { platform: String, label: String, error: OpenError },
}

/// The version of the pool's tables.
pub(super) async fn version(store: &Store) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT version FROM pool_version WHERE id = 1").fetch_one(store.read()).await
}

impl Catalog {
    /// Reads what is configured now.
    pub(super) async fn load(
        store: &Store,
        secret: &SecretKey,
        config: &PoolConfig,
    ) -> Result<Self, LoadError> {
        let mut tx = store.snapshot().await?;
        let version =
            sqlx::query_scalar("SELECT version FROM pool_version WHERE id = 1").fetch_one(&mut *tx).await?;
        // A pool that is only being put together on the page doesn't yet take the place of what serves.
        let usable: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM platforms p
             WHERE EXISTS (SELECT 1 FROM platform_models m WHERE m.platform_id = p.id)
               AND EXISTS (SELECT 1 FROM platform_keys k WHERE k.platform_id = p.id)",
        )
        .fetch_one(&mut *tx)
        .await?;
        let rows: Vec<PoolRow> = sqlx::query_as(
            "SELECT p.id AS platform_id, p.base_url, m.model_id, m.alias, m.rpm, m.rpd, m.tpm, m.tpd, m.priority,
                    k.id AS key_id, k.label, k.sealed
             FROM platforms p
             JOIN platform_models m ON m.platform_id = p.id
             LEFT JOIN platform_keys k ON k.platform_id = p.id AND k.enabled = 1
             ORDER BY p.position, p.id, m.position, m.model_id, k.position, k.id",
        )
        .fetch_all(&mut *tx)
        .await?;
        let clears: Vec<(String, String, String, i64)> =
            sqlx::query_as("SELECT platform_id, model_id, key_id, clears FROM cooldown_clears")
                .fetch_all(&mut *tx)
                .await?;
        tx.rollback().await?;
        let clears = clears
            .into_iter()
            .map(|(platform, model, key, clears)| (CandidateId::new(&platform, &model, &key), clears))
            .collect();
        let mut catalog = Catalog { version, clears, ..Catalog::default() };
        if usable > 0 || (config.single.is_none() && !config.demo) {
            catalog.add_pool(rows, secret, config)?;
        } else if let Some(single) = &config.single {
            catalog.origin = Origin::Environment;
            let target = Target::Provider {
                base_url: single.base_url.as_str().into(),
                key: single.api_key.as_str().into(),
            };
            catalog.add_only(&single.platform, &single.model, ENVIRONMENT_KEY, target, config);
        } else {
            catalog.origin = Origin::Demo;
            catalog.add_only(DEMO_PLATFORM, DEMO_MODEL, DEMO_KEY, Target::Demo, config);
        }
        Ok(catalog)
    }

    /// The candidates of an alias or of `PLATFORM/MODEL`; empty where no key of theirs is enabled,
    /// nothing where there is no such name. Model ids may hold slashes: the first one divides.
    pub(super) fn resolve(&self, asked: &str) -> Option<&[Arc<Candidate>]> {
        self.names.get(asked).map(Vec::as_slice)
    }

    pub(super) fn models(&self) -> &[ModelRow] {
        &self.models
    }

    fn add_pool(
        &mut self,
        rows: Vec<PoolRow>,
        secret: &SecretKey,
        config: &PoolConfig,
    ) -> Result<(), LoadError> {
        let mut opened: HashMap<String, Arc<str>> = HashMap::new();
        let aliases: HashSet<String> = rows.iter().map(|row| row.alias.clone()).collect();
        for row in rows {
            let full = format!("{}/{}", row.platform_id, row.model_id);
            self.name(&row.alias, &row.platform_id);
            // An alias wins over a model of the same name.
            let own_name = !aliases.contains(&full);
            if own_name {
                self.name(&full, &row.platform_id);
            }
            let (Some(key_id), Some(label), Some(sealed)) = (row.key_id, row.label, row.sealed) else {
                continue;
            };
            let key = match opened.get(&key_id) {
                Some(key) => key.clone(),
                None => match secret.open(&key_id, &sealed) {
                    Ok(plain) => opened.entry(key_id.clone()).or_insert(plain.into()).clone(),
                    Err(error) => {
                        return Err(LoadError::Sealed { platform: row.platform_id, label, error });
                    }
                },
            };
            let limit = |stored: Option<i64>| stored.map(to_u64);
            let candidate = Arc::new(Candidate {
                id: CandidateId::new(&row.platform_id, &row.model_id, &key_id),
                key_label: label.into(),
                target: Target::Provider { base_url: row.base_url.into(), key },
                limits: Limits {
                    rpm: limit(row.rpm),
                    rpd: limit(row.rpd),
                    tpm: limit(row.tpm),
                    tpd: limit(row.tpd),
                },
                cap: config.cap(&row.platform_id),
                priority: row.priority,
            });
            let names = std::iter::once(&row.alias).chain(own_name.then_some(&full));
            self.add(candidate, names);
        }
        Ok(())
    }

    fn add_only(&mut self, platform: &str, model: &str, key: &str, target: Target, config: &PoolConfig) {
        let candidate = Arc::new(Candidate {
            id: CandidateId::new(platform, model, key),
            key_label: key.into(),
            target,
            limits: Limits::default(),
            cap: config.cap(platform),
            priority: 1,
        });
        let (alias, full) = (DEFAULT_ALIAS.to_owned(), format!("{platform}/{model}"));
        self.name(&alias, platform);
        self.name(&full, platform);
        self.add(candidate, [&alias, &full].into_iter());
    }

    fn name(&mut self, id: &str, owned_by: &str) {
        if !self.names.contains_key(id) {
            self.names.insert(id.to_owned(), Vec::new());
            self.models.push(ModelRow { id: id.to_owned(), owned_by: owned_by.to_owned() });
        }
    }

    fn add<'n>(&mut self, candidate: Arc<Candidate>, names: impl Iterator<Item = &'n String>) {
        for name in names {
            self.names.entry(name.clone()).or_default().push(candidate.clone());
        }
        self.candidates.push(candidate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_come_from_the_environment_else_openrouter_has_a_thousand() {
        let caps = HashMap::from([("MY_OWN_1".to_owned(), 7), ("GROQ".to_owned(), 0)]);
        let config = PoolConfig { caps, ..PoolConfig::default() };
        assert_eq!(config.cap("my-own.1"), Some(7));
        assert_eq!(
            (config.cap("openrouter"), config.cap("groq"), config.cap("other")),
            (Some(1000), None, None)
        );
        let off = PoolConfig { caps: HashMap::from([("OPENROUTER".to_owned(), 0)]), ..PoolConfig::default() };
        assert_eq!(off.cap("openrouter"), None);
    }

    #[test]
    fn no_debug_text_shows_a_key() {
        let single = SingleModel {
            platform: "p".into(),
            base_url: "https://p/v1".into(),
            api_key: "sk-secret".into(),
            model: "m".into(),
        };
        let target = Target::Provider { base_url: "https://p/v1".into(), key: "sk-secret".into() };
        let config = PoolConfig { single: Some(single), ..PoolConfig::default() };
        assert!(!format!("{config:?}{target:?}").contains("secret"));
    }
}
