use serde_json::json;

use super::{Done, enter};
use crate::audit::Actor;
use crate::model::Error;
use crate::providers::records::Settings;
use crate::providers::{CandidateId, Pool, UNTIL_CHANGED};

impl Pool {
    /// Ends the cooldown of a model under a key, and that of the key with all its models. Nothing is done, and
    /// nothing entered, where there is none.
    ///
    /// # Errors
    /// `NotFound` where it is no candidate.
    pub async fn clear_cooldown(&self, actor: &Actor, id: &CandidateId) -> Result<Done, Error> {
        let candidates = self.catalog();
        let candidate = candidates.candidates.iter().find(|candidate| candidate.id == *id);
        let candidate = candidate.ok_or_else(|| Error::no_such("candidate", &id.key))?;
        let standing = self.quotas().status(id);
        let Some(cooldown) = standing.and_then(|standing| standing.cooldown) else {
            return Ok(None);
        };
        let until = if cooldown.until < UNTIL_CHANGED {
            cooldown.until.rfc3339()
        } else {
            "changed or cleared".to_owned()
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
        let before = format!("until {until}: {}", cooldown.reason.sentence());
        let mut tx = self.store().begin().await?;
        let (before, after) = (shown(Some(&before)), shown(None));
        let entry = enter(self, &mut tx, actor, "platform-cooldown.clear", Some(before), Some(after)).await?;
        tx.commit().await?;
        self.quotas().clear(id);
        Ok(Some(entry))
    }
}
