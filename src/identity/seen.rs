//! When sessions and keys were last used: noted in memory, written by `tidy` in one transaction,
//! so that no request writes for having been made. A crash loses a minute of it.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::model::Timestamp;
use crate::store::Tx;

use super::sessions::{INACTIVITY_MS, LIFETIME_MS};

/// What is as fresh as this is left alone.
const FRESH_MS: u64 = 60_000;
/// Noted at most between two writes; what is beyond is noted another time.
const NOTED: usize = 50_000;

#[derive(Default)]
pub(super) struct Seen {
    sessions: Mutex<HashMap<String, Timestamp>>,
    keys: Mutex<HashMap<String, Timestamp>>,
}

impl Seen {
    pub(super) fn session(&self, id_hash: &str, before: Timestamp, now: Timestamp) {
        note(&self.sessions, id_hash, Some(before), now);
    }

    pub(super) fn key(&self, id: &str, before: Option<Timestamp>, now: Timestamp) {
        note(&self.keys, id, before, now);
    }

    pub(super) async fn write(&self, tx: &mut Tx) -> Result<(), sqlx::Error> {
        let sessions = std::mem::take(&mut *self.sessions.lock());
        for (id_hash, at) in sessions {
            sqlx::query(
                "UPDATE sessions SET last_seen_ms = $2,
                   expires_at_ms = CASE WHEN created_at_ms + $4 < $3 THEN created_at_ms + $4 ELSE $3 END
                 WHERE id_hash = $1 AND last_seen_ms < $2",
            )
            .bind(id_hash)
            .bind(at.ms())
            .bind(at.plus_ms(INACTIVITY_MS).ms())
            .bind(LIFETIME_MS)
            .execute(&mut **tx)
            .await?;
        }
        let keys = std::mem::take(&mut *self.keys.lock());
        for (id, at) in keys {
            sqlx::query("UPDATE api_keys SET last_used_at_ms = $2 WHERE id = $1")
                .bind(id)
                .bind(at.ms())
                .execute(&mut **tx)
                .await?;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sessions.lock().is_empty() && self.keys.lock().is_empty()
    }
}

fn note(noted: &Mutex<HashMap<String, Timestamp>>, id: &str, before: Option<Timestamp>, now: Timestamp) {
    if before.is_some_and(|before| now.ms_since(before) < FRESH_MS) {
        return;
    }
    let mut noted = noted.lock();
    if let Some(at) = noted.get_mut(id) {
        *at = now;
    } else if noted.len() < NOTED {
        noted.insert(id.to_owned(), now);
    }
}
