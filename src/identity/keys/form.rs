//! What a key looks like: `tk_`, 43 letters and digits of randomness (256 bits), 6 of a checksum,
//! which spares the database what never was a key.

use sha2::{Digest, Sha256};

use crate::audit::hex;
use crate::identity::random_text;

const PREFIX: &str = "tk_";
const SECRET: usize = 43;
const CHECKSUM: usize = 6;
const HINT: usize = PREFIX.len() + 5;

pub(super) fn new_key() -> String {
    let secret = random_text(SECRET);
    format!("{PREFIX}{secret}{}", checksum(&secret))
}

pub(super) fn is_well_formed(key: &str) -> bool {
    let Some(rest) = key.strip_prefix(PREFIX) else {
        return false;
    };
    rest.len() == SECRET + CHECKSUM
        && rest.bytes().all(|b| b.is_ascii_alphanumeric())
        && checksum(&rest[..SECRET]) == rest[SECRET..]
}

/// Six hexadecimal digits: finds typing errors and cut-off keys, and is no secret.
fn checksum(secret: &str) -> String {
    hex(&Sha256::digest(secret)[..CHECKSUM / 2])
}

/// How a key is stored.
pub(super) fn hash(key: &str) -> String {
    hex(&Sha256::digest(key))
}

/// A key's first characters, to tell keys apart.
pub(super) fn hint(key: &str) -> String {
    key.chars().take(HINT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_well_formed_and_nothing_near_it_is() {
        let key = new_key();
        assert!(is_well_formed(&key), "{}", key.len());
        assert_ne!(key, new_key());
        assert_eq!(hint(&key).len(), 8);
        let mut wrong = key.clone();
        wrong.replace_range(10..11, if &key[10..11] == "a" { "b" } else { "a" });
        let long = format!("tk_{}", "x".repeat(4000));
        for odd in
            ["", "tk_", "tk_'--", "x", &long, &wrong, &key[..51], &format!("{key}0"), &key[3..], "tk_\u{fc}"]
        {
            assert!(!is_well_formed(odd), "{odd}");
        }
    }
}
