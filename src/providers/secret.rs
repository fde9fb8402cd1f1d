//! The key under which provider keys are stored: AES-256-GCM, bound to the row that holds them.
//!
//! Binding means that a sealed text copied into another row does not open there, so nobody who can
//! edit the database alone can make one platform receive another's key.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;
/// Before every sealed text, so that a later format can be told apart.
const VERSION: &str = "v1:";

/// 32 bytes that encrypt provider keys at rest.
#[derive(Clone)]
pub struct SecretKey([u8; KEY_BYTES]);

/// Why a sealed text gave no plain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Not a text that [`SecretKey::seal`] made.
    #[error("the stored text is not a sealed key")]
    Malformed,
    /// Sealed under another secret key, for another row, or changed since.
    #[error("the stored key was sealed under another secret key")]
    WrongKey,
}

impl SecretKey {
    /// Reads a key as `TOLLKEEPER_SECRET_KEY` has it.
    ///
    /// # Errors
    /// What is accepted, as the end of a sentence.
    pub fn from_base64(text: &str) -> Result<Self, String> {
        STANDARD
            .decode(text.trim())
            .ok()
            .and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok())
            .map(Self)
            .ok_or_else(|| {
                "32 bytes in base64 (44 characters, as `openssl rand -base64 32` prints them)".into()
            })
    }

    /// Reads the key in the file at `path`, which is made where it is missing and never overwritten.
    ///
    /// The new key is written beside it and linked to its name, so two processes that start at
    /// once use the same key and neither reads half a file.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn load_or_create(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        if let Some(key) = load(path)? {
            return Ok(key);
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| {
                format!("the folder of the secret key's file {shown} can't be created: {error}")
            })?;
        }
        let draft = path.with_extension(format!("{:016x}.new", rand::random::<u64>()));
        let made = write_new(&draft, &Self(rand::random())).and_then(|()| std::fs::hard_link(&draft, path));
        // A draft that can't be removed holds a key that nothing was sealed under, or the key itself with its mode.
        let _ = std::fs::remove_file(&draft);
        match made {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("the secret key's file {shown} can't be created: {error}")),
        }
        load(path)?.ok_or_else(|| format!("the secret key's file {shown} vanished while it was being read"))
    }

    /// Encrypts `plain` for the row `row_id`.
    pub fn seal(&self, row_id: &str, plain: &str) -> String {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let sealed = self
            .cipher()
            .encrypt(&nonce.into(), Payload { msg: plain.as_bytes(), aad: row_id.as_bytes() })
            .expect("AES-GCM takes any text up to 64 GiB");
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&sealed);
        format!("{VERSION}{}", STANDARD.encode(bytes))
    }

    /// Decrypts what [`SecretKey::seal`] made for the row `row_id`.
    pub fn open(&self, row_id: &str, sealed: &str) -> Result<String, OpenError> {
        let text = sealed.strip_prefix(VERSION).ok_or(OpenError::Malformed)?;
        let bytes = STANDARD.decode(text).map_err(|_| OpenError::Malformed)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(OpenError::Malformed)?;
        let plain = self
            .cipher()
            .decrypt(&(*nonce).into(), Payload { msg: sealed, aad: row_id.as_bytes() })
            .map_err(|_| OpenError::WrongKey)?;
        String::from_utf8(plain).map_err(|_| OpenError::Malformed)
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new(&self.0.into())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(hidden)")
    }
}

fn load(path: &Path) -> Result<Option<SecretKey>, String> {
    let shown = path.display();
    let mut text = String::new();
    match File::open(path).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("the secret key's file {shown} can't be read: {error}")),
    }
    SecretKey::from_base64(&text)
        .map(Some)
        .map_err(|accepted| format!("the secret key's file {shown} holds no key; accepted is {accepted}"))
}

fn write_new(path: &Path, key: &SecretKey) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{}", STANDARD.encode(key.0))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SecretKey {
        SecretKey::from_base64(&STANDARD.encode([byte; 32])).unwrap()
    }

    #[test]
    fn opens_for_its_own_row_under_its_own_key_alone() {
        let sealed = key(1).seal("row-1", "sk-secret");
        assert_eq!(key(1).open("row-1", &sealed).as_deref(), Ok("sk-secret"));
        assert_eq!(key(1).open("row-2", &sealed), Err(OpenError::WrongKey));
        assert_eq!(key(2).open("row-1", &sealed), Err(OpenError::WrongKey));
        assert_ne!(sealed, key(1).seal("row-1", "sk-secret"), "a nonce was used twice");
        assert!(!sealed.contains("secret"));
    }

    #[test]
    fn what_was_changed_or_never_sealed_does_not_open() {
        let sealed = key(1).seal("row", "sk");
        let mut bytes = STANDARD.decode(&sealed[VERSION.len()..]).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let changed = format!("{VERSION}{}", STANDARD.encode(bytes));
        assert_eq!(key(1).open("row", &changed), Err(OpenError::WrongKey));
        for text in ["", "sk-plain", "v1:", "v1:!!", "v2:AAAA"] {
            assert_eq!(key(1).open("row", text), Err(OpenError::Malformed), "{text}");
        }
    }

    #[test]
    fn only_32_bytes_in_base64_are_a_key() {
        for bad in ["", "short", &STANDARD.encode([0; 31]), &STANDARD.encode([0; 33]), &"!".repeat(44)] {
            assert!(SecretKey::from_base64(bad).unwrap_err().contains("32 bytes in base64"), "{bad}");
        }
        assert!(SecretKey::from_base64(&format!("{}\n", STANDARD.encode([7; 32]))).is_ok());
        assert!(!format!("{:?}", key(65)).contains("65"));
    }

    #[test]
    fn the_file_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.key");
        let keys: Vec<SecretKey> = std::thread::scope(|scope| {
            let starts: Vec<_> =
                (0..8).map(|_| scope.spawn(|| SecretKey::load_or_create(&path).unwrap())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        let sealed = keys[0].seal("row", "sk");
        assert!(keys.iter().all(|key| key.open("row", &sealed).is_ok()));
        assert!(SecretKey::load_or_create(&path).unwrap().open("row", &sealed).is_ok());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a draft was left behind");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_without_a_key_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.key");
        std::fs::write(&path, "not a key").unwrap();
        let error = SecretKey::load_or_create(&path).unwrap_err();
        assert!(error.contains("holds no key") && !error.contains("not a key"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "not a key");
    }
}
