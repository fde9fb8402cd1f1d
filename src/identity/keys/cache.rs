//! Keys in use, so that a busy one costs no read of the database.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::identity::Caller;
use crate::model::Timestamp;

/// How long a key is believed without looking.
const FRESH_MS: u64 = 500;
/// Keys known at once; past it all are forgotten, and looked up again.
const KEYS_MAX: usize = 10_000;

/// What the database knows of a key that is valid.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) caller: Caller,
    pub(super) last_used: Option<Timestamp>,
    pub(super) expires_at: Option<Timestamp>,
}

#[derive(Default)]
pub(in crate::identity) struct KeyCache(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// By the key's hash, with the time of the look-up.
    keys: HashMap<String, (Timestamp, Found)>,
    /// Changes whenever all is forgotten.
    epoch: u64,
}

/// That a key isn't known, and since when: handed back with what a look-up finds, which is not kept if a
/// key was revoked meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unknown {
    epoch: u64,
}

impl KeyCache {
    pub(super) fn get(&self, hash: &str, now: Timestamp) -> Result<Found, Unknown> {
        let known = self.0.lock();
        let fresh = |at: Timestamp| at <= now && now.ms_since(at) < FRESH_MS;
        known
            .keys
            .get(hash)
            .filter(|(at, found)| fresh(*at) && found.expires_at.is_none_or(|end| end > now))
            .map(|(_, found)| found.clone())
            .ok_or(Unknown { epoch: known.epoch })
    }

    /// `at` is when the look-up began.
    pub(super) fn put(&self, hash: String, found: Found, at: Timestamp, unknown: Unknown) {
        let mut known = self.0.lock();
        if known.epoch != unknown.epoch {
            return;
        }
        if known.keys.len() >= KEYS_MAX {
            known.keys.clear();
        }
        known.keys.insert(hash, (at, found));
    }

    pub(super) fn forget_all(&self) {
        let mut known = self.0.lock();
        known.keys.clear();
        known.epoch += 1;
    }
}
