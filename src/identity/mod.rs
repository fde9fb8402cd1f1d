//! Who is calling, and what they may do: users, sessions, API keys, roles.
//!
//! A session's [`Caller`] is loaded anew for every request, so that whoever is removed or given another role is
//! seen as such at once; a key's at most half a second late. Users and memberships are written by the directory; only the first
//! admin comes from here. How a caller arrives over HTTP is in `api::auth`.

mod admin;
mod caller;
mod keys;
mod password;
mod proxies;
mod seen;
mod sessions;
mod sign_in;
#[cfg(test)]
pub(crate) mod testing;
mod throttle;
mod tidy;

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use parking_lot::Mutex;
use rand::distr::{Alphanumeric, SampleString};

use crate::clock::SharedClock;
use crate::config::Network;
use crate::model::UserId;
use crate::store::Store;

pub use admin::FirstAdmin;
pub use caller::{Caller, Via};
pub use keys::{CreatedKey, NewKey};
pub use password::{Passwords, check_new_password, is_argon2id_hash};
pub use sessions::{Sessions, end_sessions_of};

use keys::KeyCache;
use proxies::TrustedProxies;
use seen::Seen;
use throttle::Throttle;

#[derive(Clone)]
pub struct Identity {
    store: Store,
    clock: SharedClock,
    production: bool,
    passwords: Passwords,
    throttle: Arc<Throttle>,
    proxies: Arc<TrustedProxies>,
    seen: Arc<Seen>,
    keys_in_use: Arc<KeyCache>,
    /// The token of the set-up link, while there is no admin.
    setup: Arc<Mutex<Option<String>>>,
}

impl Identity {
    /// `production` makes the session's cookie `__Host-` and Secure.
    pub fn new(store: Store, clock: SharedClock, production: bool) -> Self {
        Identity {
            store,
            production,
            passwords: Passwords::default(),
            throttle: Arc::new(Throttle::new(clock.clone())),
            proxies: Arc::default(),
            seen: Arc::default(),
            keys_in_use: Arc::default(),
            setup: Arc::default(),
            clock,
        }
    }

    /// Believes what these proxies say of whom they speak for.
    pub fn with_trusted_proxies(self, proxies: Vec<Network>) -> Self {
        Identity { proxies: Arc::new(TrustedProxies(proxies)), ..self }
    }

    /// The address that a request comes from, as far as it can be believed.
    pub fn client_address(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        peer.map(|peer| self.proxies.client(peer, headers))
    }
}

/// An id for a user that is about to be made.
pub fn new_user_id() -> UserId {
    format!("u_{}", random_text(20)).into()
}

/// Letters and digits drawn from the operating system's randomness, 5.95 bits a character.
fn random_text(length: usize) -> String {
    Alphanumeric.sample_string(&mut rand::rng(), length)
}
