//! One tiny call to a very key and model, to see whether they work.

use std::time::Duration;

use serde_json::{Map, json};

use super::plain;
use crate::audit::{self, Actor, Change};
use crate::ledger::Meter;
use crate::model::Error;
use crate::model::fmt::{counted, thousands};
use crate::model::providers::Tested;
use crate::providers::book::Obstacle;
use crate::providers::catalog::Candidate;
use crate::providers::cooldown::consequence;
use crate::providers::link::SentBody;
use crate::providers::quotas::Estimate;
use crate::providers::{CandidateId, Failure, Limits, ModelRequest, Pool, Sent, Target, outcome};
use crate::store::to_u64;

/// Who looks at a page waits no longer.
const WITHIN: Duration = Duration::from_secs(20);
/// Enough for a word, and so little that nobody minds what it costs.
const MAX_TOKENS: u64 = 16;
/// What the bound on the answer is called: by nearly all, and by OpenAI for its models that reason.
const MAX_TOKENS_NAMES: [&str; 2] = ["max_tokens", "max_completion_tokens"];

enum Trial {
    Answered { after_ms: u64, tokens: u64 },
    Failed(Failure),
}

impl Trial {
    /// Whether the model answered, and the end of a sentence that says so.
    fn told(self) -> (bool, String) {
        match self {
            Trial::Answered { after_ms, tokens } => {
                let used = counted(tokens, "token", "tokens");
                (true, format!("answered after {} ms, with {used}", thousands(after_ms)))
            }
            Trial::Failed(Failure::Status { status: 400, message, .. }) => {
                let words = message.unwrap_or_else(|| "it gives no reason".into());
                (false, format!("refused the test's request (400): {}", words.trim_end_matches('.')))
            }
            Trial::Failed(failure) => (false, consequence(&failure).reason.sentence()),
        }
    }
}

impl Pool {
    /// Makes the call, whatever the candidate's cooldown says and whether or not its key is enabled. It counts in
    /// the windows like any other, belongs to no workspace, and is entered in the trail.
    ///
    /// # Errors
    /// `NotFound`; `NoRoom` where the windows have no place for it. That the provider fails is no error but an
    /// outcome.
    pub async fn test_key(&self, actor: &Actor, id: &CandidateId) -> Result<Tested, Error> {
        let candidate = self.find(id).await?;
        let (pool, actor) = (self.clone(), actor.clone());
        // The provider counts the call also where nobody waits for the answer any more.
        let trial = tokio::spawn(async move { pool.try_out(&actor, &candidate).await });
        trial.await.unwrap_or(Err(Error::Internal))
    }

    async fn try_out(&self, actor: &Actor, candidate: &Candidate) -> Result<Tested, Error> {
        let id = &candidate.id;
        let [usual, other] = MAX_TOKENS_NAMES;
        let (ok, outcome) = match self.try_with(candidate, usual).await? {
            Trial::Failed(Failure::Status { status: 400, message: Some(words), .. })
                if words.contains(other) =>
            {
                self.try_with(candidate, other).await?.told()
            }
            trial => trial.told(),
        };
        let tested = Tested { at: self.clock().now(), ok, outcome };
        let change = Change {
            actor,
            action: "platform-key.test",
            workspace: None,
            before: None,
            after: Some(json!({
                "platform": &*id.platform, "key": &*candidate.key_label, "model": &*id.model,
                "outcome": tested.outcome,
            })),
        };
        let mut tx = self.store().begin().await?;
        audit::append(&mut tx, tested.at, change).await?;
        tx.commit().await?;
        self.set_tested(id, tested.clone());
        Ok(tested)
    }

    async fn try_with(&self, candidate: &Candidate, max_tokens: &str) -> Result<Trial, Error> {
        let mut members = Map::new();
        let question = json!([{ "role": "user", "content": "Reply with the word OK." }]);
        members.insert("messages".into(), question);
        members.insert(max_tokens.into(), MAX_TOKENS.into());
        let request = ModelRequest::new(members, false);
        let estimate = Estimate::of(|typical| self.upstream().estimate(&request, typical));
        let held = self.quotas().reserve_one(&candidate.id, candidate.limits, candidate.cap, estimate);
        let mut lease = held.map_err(|obstacle| {
            outcome::no_room(std::iter::once((candidate, obstacle)), self.clock().now())
        })?;
        if !lease.is_confirmed().await {
            let others = std::iter::once((candidate, Obstacle::Elsewhere));
            return Err(outcome::no_room(others, self.clock().now()).into());
        }
        let begun = self.clock().now();
        let sending = self.upstream().send(&candidate.target, &candidate.id.model, &request);
        match tokio::time::timeout(WITHIN, sending).await.unwrap_or(Err(Failure::Timeout)) {
            Ok(Sent { stated, body, .. }) => {
                lease.answered(stated);
                let step = match &body {
                    SentBody::Whole { step, .. } => *step,
                    SentBody::Stream { so_far, .. } => so_far(),
                };
                // Of no request whose usage it could be written with.
                let meter = Meter::default();
                lease.settle(&step, &meter);
                self.quotas().write(meter.take_window_row().into_iter().collect());
                let after_ms = self.clock().now().ms_since(begun);
                Ok(Trial::Answered { after_ms, tokens: step.usage.total() })
            }
            Err(failure) => {
                lease.failed(&failure);
                Ok(Trial::Failed(failure))
            }
        }
    }

    /// The candidate, also where its key is disabled.
    async fn find(&self, id: &CandidateId) -> Result<Candidate, Error> {
        if let Some(candidate) = self.catalog().candidates.iter().find(|candidate| candidate.id == *id) {
            return Ok(Candidate::clone(candidate));
        }
        type Columns = (String, String, String, Option<i64>, Option<i64>, Option<i64>, Option<i64>, i64);
        let none = || Error::no_such("provider key", &id.key);
        if ![&id.platform, &id.model, &id.key].into_iter().all(|text| plain(text)) {
            return Err(Error::no_such("provider key", ""));
        }
        let row: Option<Columns> = sqlx::query_as(
            "SELECT p.base_url, k.label, k.sealed, m.rpm, m.rpd, m.tpm, m.tpd, m.priority
             FROM platform_keys k
             JOIN platforms p ON p.id = k.platform_id
             JOIN platform_models m ON m.platform_id = p.id
             WHERE k.id = $1 AND p.id = $2 AND m.model_id = $3",
        )
        .bind(id.key.to_string())
        .bind(id.platform.to_string())
        .bind(id.model.to_string())
        .fetch_optional(self.store().read())
        .await?;
        let (base_url, label, sealed, rpm, rpd, tpm, tpd, priority) = row.ok_or_else(none)?;
        let key = self.secret().open(&id.key, &sealed).map_err(|error| {
            tracing::error!(%error, key_id = %id.key, "a provider key can't be opened");
            Error::Internal
        })?;
        let limit = |stored: Option<i64>| stored.map(to_u64);
        Ok(Candidate {
            id: id.clone(),
            key_label: label.into(),
            target: Target::Provider { base_url: base_url.into(), key: key.into() },
            limits: Limits { rpm: limit(rpm), rpd: limit(rpd), tpm: limit(tpm), tpd: limit(tpd) },
            cap: self.config().cap(&id.platform),
            priority,
        })
    }
}
