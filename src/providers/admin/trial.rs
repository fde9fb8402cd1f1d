//! One tiny call to a very key and model, to see whether they work.

use std::time::Duration;

use serde_json::json;

use super::plain;
use crate::audit::{self, Actor, Change};
use crate::model::Error;
use crate::model::fmt::{counted, thousands};
use crate::model::providers::Tested;
use crate::providers::catalog::Candidate;
use crate::providers::link::SentBody;
use crate::providers::quotas::{Estimate, Lease};
use crate::providers::{CandidateId, ChatRequest, Failure, Limits, Pool, Sent, Target, outcome};
use crate::store::to_u64;

/// Who looks at a page waits no longer.
const WITHIN: Duration = Duration::from_secs(20);
/// Enough for a word, and so little that nobody minds what it costs.
const MAX_TOKENS: u64 = 16;

impl Pool {
    /// Makes the call, whatever the candidate's cooldown says and whether or not its key is enabled. It counts in
    /// the windows like any other, belongs to no workspace, and is entered in the trail.
    ///
    /// # Errors
    /// `NotFound`; `NoRoom` where the windows have no place for it. That the provider fails is no error but an
    /// outcome.
    pub async fn test_key(&self, actor: &Actor, id: &CandidateId) -> Result<Tested, Error> {
        let candidate = self.find(id).await?;
        let body = json!({
            "messages": [{ "role": "user", "content": "Reply with the word OK." }],
            "max_tokens": MAX_TOKENS,
        });
        let members = body.as_object().cloned().unwrap_or_default();
        let request = ChatRequest::new(members, false);
        let estimate = Estimate::of(|typical| self.upstream().estimate(&request, typical));
        let lease =
            self.quotas().reserve_one(id, candidate.limits, candidate.cap, estimate).map_err(|obstacle| {
                outcome::no_room(std::iter::once((&candidate, obstacle)), self.clock().now())
            })?;
        let begun = self.clock().now();
        let sending = self.upstream().send(&candidate.target, &id.model, &request);
        let sent = tokio::time::timeout(WITHIN, sending).await.unwrap_or(Err(Failure::Timeout));
        let took_ms = self.clock().now().ms_since(begun);
        let tested = self.tell(lease, sent, took_ms);

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

    fn tell(&self, mut lease: Lease, sent: Result<Sent, Failure>, took_ms: u64) -> Tested {
        let (ok, outcome) = match sent {
            Ok(Sent { stated, body, .. }) => {
                let request = lease.answered(stated);
                let step = match &body {
                    SentBody::Whole { step, .. } => *step,
                    SentBody::Stream { so_far, .. } => so_far(),
                };
                let tokens = lease.settle(&step);
                self.quotas().write(vec![request, tokens]);
                let used = counted(step.usage.total(), "token", "tokens");
                (true, format!("answered after {} ms, with {used}", thousands(took_ms)))
            }
            Err(failure) => {
                let consequence = lease.failed(&failure);
                let outcome = match failure {
                    Failure::Status { status: 400, message, .. } => format!(
                        "took the key, but not the test's request: {}",
                        message.as_deref().unwrap_or("it gave no reason")
                    ),
                    _ => consequence.reason.sentence(),
                };
                (false, outcome)
            }
        };
        Tested { at: self.clock().now(), ok, outcome }
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
