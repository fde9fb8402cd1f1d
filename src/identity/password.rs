//! Passwords: argon2id, a few at a time, off the async threads.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::{ARGON2ID_IDENT, Argon2, Params, PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;

use crate::model::Error;

/// Each hash takes 19 MiB and about 20 ms of one core.
const AT_ONCE: usize = 4;

/// A new password has so many characters at least and at most.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=1024;

/// What a hash made elsewhere may cost to check: 1 GiB, 32 passes, 16 lanes.
const MOST: (u32, u32, u32) = (1 << 20, 32, 16);

#[derive(Clone)]
pub struct Passwords {
    room: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Self {
        Passwords { room: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Passwords {
    /// A PHC string with a new salt.
    pub async fn hash(&self, password: String) -> Result<String, Error> {
        self.apart(move || {
            argon2().hash_password(password.as_bytes()).map(|hash| hash.to_string()).map_err(|error| {
                tracing::error!(%error, "a password could not be hashed");
                Error::Internal
            })
        })
        .await?
    }

    /// Whether `password` is the one that `hash` was made of. Without a hash (there is no such
    /// user) the answer is no, after as long a time.
    pub async fn verify(&self, password: String, hash: Option<String>) -> Result<bool, Error> {
        self.apart(move || {
            let Some(hash) = hash else {
                let spent = argon2().hash_password_with_salt(password.as_bytes(), b"there is no such");
                return std::hint::black_box(spent).is_err();
            };
            PasswordHash::new(&hash)
                .is_ok_and(|hash| argon2().verify_password(password.as_bytes(), &hash).is_ok())
        })
        .await
    }

    /// The permit moves into the work, which goes on when its caller has hung up.
    async fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let permit = self.room.clone().acquire_owned().await.map_err(|_| Error::Internal)?;
        tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        })
        .await
        .map_err(|error| {
            tracing::error!(%error, "hashing a password ended early");
            Error::Internal
        })
    }
}

/// The library's defaults are what OWASP recommends: argon2id, m = 19456 KiB, t = 2, p = 1.
fn argon2() -> Argon2<'static> {
    Argon2::default()
}

/// # Errors
/// What a new password has to be like.
pub fn check_new_password(password: &str) -> Result<(), Error> {
    if LENGTH.contains(&password.chars().count()) {
        Ok(())
    } else {
        Err(Error::Invalid("password must have 12 to 1,024 characters".into()))
    }
}

/// Whether `text` is a PHC string that a password can be checked against: argon2id, whole, and of
/// bearable cost.
pub fn is_argon2id_hash(text: &str) -> bool {
    let Ok(hash) = PasswordHash::new(text) else {
        return false;
    };
    let Ok(params) = Params::try_from(&hash) else {
        return false;
    };
    let (memory, passes, lanes) = MOST;
    hash.algorithm == ARGON2ID_IDENT
        && hash.salt.is_some()
        && hash.hash.is_some()
        && params.m_cost() <= memory
        && params.t_cost() <= passes
        && params.p_cost() <= lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_known_again_and_no_other_is() {
        let passwords = Passwords::default();
        let hash = passwords.hash("correct horse battery".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(is_argon2id_hash(&hash));
        assert_ne!(passwords.hash("correct horse battery".into()).await.unwrap(), hash);
        assert!(passwords.verify("correct horse battery".into(), Some(hash.clone())).await.unwrap());
        assert!(!passwords.verify("Correct horse battery".into(), Some(hash)).await.unwrap());
        assert!(!passwords.verify("correct horse battery".into(), None).await.unwrap());
        assert!(!passwords.verify("x".into(), Some("no hash".into())).await.unwrap());
    }

    #[test]
    fn new_passwords_are_counted_in_characters() {
        for good in ["twelve chars", &"ü".repeat(12), &"x".repeat(1024)] {
            assert!(check_new_password(good).is_ok());
        }
        for bad in ["", "eleven char", &"x".repeat(1025)] {
            assert_eq!(check_new_password(bad).unwrap_err().status(), 422);
        }
    }

    #[test]
    fn only_whole_and_bearable_argon2id_hashes_are_taken() {
        let (salt, output) = ("c29tZXNhbHRzYWx0", "X2Jv8d8b3jUDgKUKWdQzZqmuP9s6PYUmbTd4Ov3lZg8");
        assert!(is_argon2id_hash(&format!("$argon2id$v=19$m=65536,t=3,p=4${salt}${output}")));
        for bad in [
            String::new(),
            "hunter2hunter2".into(),
            format!("$argon2i$v=19$m=65536,t=3,p=4${salt}${output}"),
            format!("$argon2id$v=19$m=65536,t=3,p=4${salt}"),
            format!("$argon2id$v=19$m=4294967295,t=3,p=4${salt}${output}"),
            format!("$argon2id$v=19$m=65536,t=4000000,p=4${salt}${output}"),
            "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW".into(),
        ] {
            assert!(!is_argon2id_hash(&bad), "{bad}");
        }
    }
}
