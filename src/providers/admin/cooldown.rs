use serde_json::json;

use super::{Done, finish};
use crate::audit::Actor;
use crate::model::Error;
use crate::providers::records::Settings;
use crate::providers::{CandidateId, Cooldown, Pool, UNTIL_CHANGED};
use crate::store::Tx;

impl Pool {
    /// Ends the cooldown of a model under a key, and that of the key with all its models, on every replica. Nothing
    /// is done, and nothing entered, where there can be none.
    ///
    /// # Errors
    /// `NotFound` where it is no candidate.
    pub async fn clear_cooldown(&self, actor: &Actor, id: &CandidateId) -> Result<Done, Error> {
        let candidates = self.catalog();
        let candidate = candidates.candidates.iter().find(|candidate| candidate.id == *id);
        let candidate = candidate.ok_or_else(|| Error::no_such("candidate", &id.key))?;
        let standing = self.quotas().status(id);
        let cooldown = standing.and_then(|standing| standing.cooldown);
        let mut tx = self.store().begin().await?;
        let before = match cooldown {
            Some(Cooldown { until, reason, .. }) if until < UNTIL_CHANGED => {
                format!("until {}: {}", until.rfc3339(), reason.sentence())
            }
            Some(Cooldown { reason, .. }) => format!("until changed or cleared: {}", reason.sentence()),
            None if others_run(&mut tx).await? => "known to other replicas alone, if at all".to_owned(),
            None => return Ok(None),
        };
        let shown = |cooldown: Option<&str>| -> Settings {
            [
                ("platform", json!(&*id.platform)),
                ("key", json!(&*candidate.key_label)),
                ("model", json!(&*id.model)),
                ("cooldown", json!(cooldown)),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
        };
        // The environment's key and the demo model's have no row. Their cooldowns end here alone.
        sqlx::query(
            "INSERT INTO cooldown_clears (platform_id, model_id, key_id, clears)
             SELECT $1, $2, id, 1 FROM platform_keys WHERE id = $3
             ON CONFLICT (key_id, platform_id, model_id) DO UPDATE SET clears = cooldown_clears.clears + 1",
        )
        .bind(id.platform.to_string())
        .bind(id.model.to_string())
        .bind(id.key.to_string())
        .execute(&mut *tx)
        .await?;
        let (before, after) = (shown(Some(&before)), shown(None));
        let done = finish(self, tx, actor, "platform-cooldown.clear", Some(before), Some(after)).await?;
        self.quotas().clear(id);
        Ok(done)
    }
}

/// Whether there may be cooldowns that this replica doesn't know of.
async fn others_run(tx: &mut Tx) -> Result<bool, sqlx::Error> {
    let replicas: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM replicas").fetch_one(&mut **tx).await?;
    Ok(replicas > 1)
}
