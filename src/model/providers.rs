//! The provider pool as its page shows it, and what can be changed there.

use serde::{Deserialize, Serialize};

use super::ids::{is_id, is_model_id};
use super::limit::{BUDGET_MAX, RATE_MAX};
use super::reports::AuditLine;
use super::{Error, Timestamp};

/// All that the page shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvidersPage {
    pub now: Timestamp,
    pub from: PoolSource,
    /// In the order in which they are configured.
    pub platforms: Vec<PlatformRow>,
    /// One for each model and key of a platform, disabled keys included.
    pub candidates: Vec<CandidateState>,
    pub unserved: Unserved,
    /// The change that has just been made, where the address names one.
    pub done: Option<AuditLine>,
}

/// How many candidates stand how. Each is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readiness {
    /// A request may go there now.
    pub ready: u64,
    pub cooling: u64,
    /// A window or the day has no room for one more.
    pub full: u64,
    /// Their key is disabled.
    pub disabled: u64,
}

impl Readiness {
    pub fn all(&self) -> u64 {
        self.ready + self.cooling + self.full + self.disabled
    }
}

impl ProvidersPage {
    pub fn readiness(&self) -> Readiness {
        let disabled = |state: &CandidateState| {
            let keys = self.platforms.iter().flat_map(|platform| &platform.keys);
            keys.filter(|key| !key.enabled).any(|key| key.id == state.key)
        };
        let mut counts = Readiness::default();
        for state in &self.candidates {
            let count = match state {
                state if disabled(state) => &mut counts.disabled,
                state if state.cooldown.is_some() => &mut counts.cooling,
                state if state.is_full() => &mut counts.full,
                _ => &mut counts.ready,
            };
            *count += 1;
        }
        counts
    }
}

/// Where the candidates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolSource {
    /// From a directory file or from the page.
    Stored,
    /// The one model of the environment.
    Environment,
    /// The built-in demo model.
    Demo,
    /// There are none.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformRow {
    pub id: String,
    /// Empty where there is none to speak of.
    pub base_url: String,
    /// Whether it is the environment's or the demo's, which can't be changed here.
    pub fixed: bool,
    /// Whether a directory file made it.
    pub managed: bool,
    pub keys: Vec<KeyRow>,
    pub models: Vec<ModelRow>,
}

/// A platform's key. Its secret is never told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "server", schema(as = ProviderKey))]
pub struct KeyRow {
    pub id: String,
    pub label: String,
    pub enabled: bool,
    pub managed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "server", schema(as = ProviderModel))]
pub struct ModelRow {
    /// The upstream's id.
    pub id: String,
    #[serde(flatten)]
    pub settings: ModelSettings,
    pub managed: bool,
}

/// What can be set of a model. A limit of `null` is unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct ModelSettings {
    /// What callers ask for.
    pub alias: String,
    pub rpm: Option<u64>,
    pub rpd: Option<u64>,
    pub tpm: Option<u64>,
    pub tpd: Option<u64>,
    /// Lower is tried first.
    pub priority: u64,
}

impl ModelSettings {
    /// The limits in the order in which they are shown.
    pub fn limits(&self) -> [Option<u64>; 4] {
        [self.rpm, self.rpd, self.tpm, self.tpd]
    }

    /// # Errors
    /// `Invalid`, which names the field and what it takes.
    pub fn check(&self, model: &str) -> Result<(), Error> {
        let invalid = |what: String| Err(Error::Invalid(what));
        if !is_model_id(model) {
            return invalid(
                "model has to be the provider's id of it: 1 to 200 printable characters without blanks"
                    .into(),
            );
        }
        if self.alias != model && !is_id(&self.alias) {
            return invalid(
                "alias takes letters, digits and . _ -, 128 at most, or the model's own id".into(),
            );
        }
        for (name, limit) in ["rpm", "rpd", "tpm", "tpd"].into_iter().zip(self.limits()) {
            if limit.is_some_and(|limit| !(1..=BUDGET_MAX).contains(&limit)) {
                return invalid(format!(
                    "{name} has to be a whole number from 1 to {BUDGET_MAX}, or left out where it is unlimited"
                ));
            }
        }
        if self.priority > RATE_MAX {
            return invalid(format!("priority has to be a whole number from 0 (tried first) to {RATE_MAX}"));
        }
        Ok(())
    }
}

/// How a model under a key stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateState {
    pub platform: String,
    pub model: String,
    pub key: String,
    pub rpm: Quota,
    pub rpd: Quota,
    pub tpm: Quota,
    pub tpd: Quota,
    /// Requests of the key over all models since 00:00 UTC.
    pub day: Quota,
    pub cooldown: Option<CooldownNote>,
    pub stated: StatedNote,
    pub tested: Option<Tested>,
}

impl CandidateState {
    /// The windows in the order in which they are shown.
    pub fn windows(&self) -> [Quota; 4] {
        [self.rpm, self.rpd, self.tpm, self.tpd]
    }

    /// Whether one more request has no room, be it ever so small.
    fn is_full(&self) -> bool {
        let full = |quota: &Quota| {
            quota.limit.is_some_and(|limit| quota.used.saturating_add(quota.in_flight) >= limit)
        };
        self.windows().iter().chain([&self.day]).any(full)
    }

    /// Of the limits that the provider states, those that are none of ours: requests, tokens.
    pub fn stated_otherwise(&self) -> (Option<u64>, Option<u64>) {
        let differs = |stated: Option<u64>, ours: [Quota; 2]| {
            stated.filter(|stated| ours.iter().all(|quota| quota.limit != Some(*stated)))
        };
        (
            differs(self.stated.requests, [self.rpm, self.rpd]),
            differs(self.stated.tokens, [self.tpm, self.tpd]),
        )
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    pub used: u64,
    pub in_flight: u64,
    /// None is unlimited.
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CooldownNote {
    /// None where it lasts until the key is changed or the cooldown is cleared.
    pub until: Option<Timestamp>,
    /// The end of a sentence that begins with the candidate's name.
    pub reason: String,
}

/// What the provider's answers say of its limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedNote {
    pub requests: Option<u64>,
    pub tokens: Option<u64>,
}

/// What came of a key's test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Tested {
    #[cfg_attr(feature = "server", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// Whether the model answered.
    pub ok: bool,
    /// In a sentence.
    pub outcome: String,
}

/// Requests that no candidate could serve.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unserved {
    /// Of the last hour.
    pub count: u64,
    /// The newest of them: when, what was asked for, and why it came to nothing.
    pub last: Option<UnservedRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnservedRequest {
    pub at: Timestamp,
    pub asked: String,
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> ModelSettings {
        ModelSettings { alias: "small".into(), rpm: Some(1), rpd: None, tpm: None, tpd: None, priority: 1 }
    }

    #[test]
    fn settings_are_checked_by_field() {
        let cases = [
            (settings(), "m", None),
            (ModelSettings { alias: "a/b".into(), ..settings() }, "a/b", None),
            (settings(), "with blank", Some("model")),
            (ModelSettings { alias: "a/b".into(), ..settings() }, "m", Some("alias")),
            (ModelSettings { rpm: Some(0), ..settings() }, "m", Some("rpm")),
            (ModelSettings { tpd: Some(BUDGET_MAX + 1), ..settings() }, "m", Some("tpd")),
            (ModelSettings { priority: RATE_MAX + 1, ..settings() }, "m", Some("priority")),
        ];
        for (settings, model, field) in cases {
            let fault = settings.check(model).err().map(|error| error.to_string());
            assert_eq!(fault.is_some(), field.is_some(), "{settings:?}");
            assert!(fault.unwrap_or_default().starts_with(field.unwrap_or_default()));
        }
    }

    fn state(key: &str) -> CandidateState {
        let quota = |limit| Quota { used: 0, in_flight: 0, limit };
        CandidateState {
            platform: "p".into(),
            model: "m".into(),
            key: key.into(),
            rpm: quota(Some(20)),
            rpd: quota(Some(14_400)),
            tpm: quota(None),
            tpd: quota(None),
            day: quota(None),
            cooldown: None,
            stated: StatedNote::default(),
            tested: None,
        }
    }

    #[test]
    fn each_candidate_stands_in_one_way() {
        let key = |id: &str, enabled| KeyRow { id: id.into(), label: id.into(), enabled, managed: false };
        let cooldown = Some(CooldownNote { until: None, reason: String::new() });
        let full = Quota { used: 999, in_flight: 1, limit: Some(1_000) };
        let page = ProvidersPage {
            now: Timestamp(0),
            from: PoolSource::Stored,
            platforms: vec![PlatformRow {
                id: "p".into(),
                base_url: String::new(),
                fixed: false,
                managed: false,
                keys: vec![key("on", true), key("off", false)],
                models: Vec::new(),
            }],
            candidates: vec![
                state("on"),
                CandidateState { cooldown: cooldown.clone(), day: full, ..state("on") },
                CandidateState { day: full, ..state("on") },
                CandidateState { cooldown, ..state("off") },
            ],
            unserved: Unserved::default(),
            done: None,
        };
        assert_eq!(page.readiness(), Readiness { ready: 1, cooling: 1, full: 1, disabled: 1 });
    }

    #[test]
    fn what_the_provider_states_counts_where_it_is_no_limit_of_ours() {
        let stated = StatedNote { requests: Some(14_400), tokens: Some(18_000) };
        let mut state = CandidateState { stated, ..state("k") };
        assert_eq!(state.stated_otherwise(), (None, Some(18_000)));
        state.stated = StatedNote { requests: Some(30), tokens: None };
        assert_eq!(state.stated_otherwise(), (Some(30), None));
    }
}
