//! What is done in the background: noting use, forgetting what is over.

use std::time::Duration;

use crate::model::Error;

use super::{Identity, keys, sessions};

const EVERY: Duration = Duration::from_mins(1);

impl Identity {
    /// Tidies once a minute, for ever. Whoever spawns it ends it, and calls [`Identity::tidy`] once
    /// more before the store is closed.
    pub async fn keep_tidy(self) {
        let mut minute = tokio::time::interval(EVERY);
        minute.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            minute.tick().await;
            if let Err(error) = self.tidy().await {
                tracing::warn!(%error, "sessions and keys could not be tidied; the next round is in a minute");
            }
        }
    }

    /// Writes when sessions and keys were last used; deletes expired sessions and keys revoked long
    /// ago, in small steps that others' writes can come between.
    pub async fn tidy(&self) -> Result<(), Error> {
        if !self.seen.is_empty() {
            let mut tx = self.store.begin().await?;
            self.seen.write(&mut tx).await?;
            tx.commit().await?;
        }
        let now = self.clock.now();
        let mut more = true;
        while more {
            let mut tx = self.store.begin().await?;
            more = sessions::delete_expired(&mut tx, now).await?;
            tx.commit().await?;
        }
        let mut tx = self.store.begin().await?;
        keys::delete_long_revoked(&mut tx, now).await?;
        tx.commit().await?;
        Ok(())
    }
}
