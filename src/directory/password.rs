//! Hashing of the passwords that a directory file brings: argon2id, 19 MiB, two passes.

use argon2::password_hash::PasswordHasher;
use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordVerifier, Version};

fn argon2id() -> Argon2<'static> {
    let params = Params::new(19_456, 2, 1, None).expect("these are parameters that argon2 takes");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// A new hash as PHC string. Takes some 20 ms of CPU: not for the threads that serve requests.
pub(super) fn hash(password: &str) -> Result<String, String> {
    argon2id()
        .hash_password(password.as_bytes())
        .map(|hash| hash.to_string())
        .map_err(|error| format!("a password can't be hashed: {error}"))
}

/// Whether the password gives the hash, whatever parameters it was made with. As slow as [`hash`].
pub(super) fn fits(password: &str, hash: &str) -> bool {
    argon2id().verify_password(password.as_bytes(), hash).is_ok()
}

/// Whether a text is a whole argon2id hash with parameters that can be computed.
pub(super) fn is_argon2id(text: &str) -> bool {
    PasswordHash::new(text).is_ok_and(|hash| {
        hash.algorithm.as_str() == "argon2id"
            && hash.salt.is_some()
            && hash.hash.is_some()
            && Params::try_from(&hash).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_fits_its_password_alone() {
        let made = hash("correct horse battery").unwrap();
        assert!(is_argon2id(&made) && made.contains("m=19456,t=2,p=1"), "{made}");
        assert!(fits("correct horse battery", &made) && !fits("correct horse batterz", &made));
        assert_ne!(made, hash("correct horse battery").unwrap(), "each hash has a salt of its own");
        for bad in
            ["", "plain", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$aGFzaGhhc2hoYXNo", "$argon2id$v=19$m=1"]
        {
            assert!(!is_argon2id(bad), "{bad}");
        }
    }
}
