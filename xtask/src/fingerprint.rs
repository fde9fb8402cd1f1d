//! Digests that tell whether something has changed since the last time.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Result;

/// Hexadecimal digits kept of a digest: 64 bits, ample against chance, short enough for a file's name.
const DIGITS: usize = 16;

pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    digits(&Sha256::digest(bytes))
}

/// One digest over the names and the contents of all these files and folders, and over `extra`.
pub(crate) fn of_files(root: &Path, paths: &[&str], extra: &str) -> Result<String> {
    let mut digest = Sha256::new();
    digest.update(extra);
    for path in paths {
        for file in files_under(&root.join(path))? {
            let bytes = fs::read(&file)?;
            digest.update(file.strip_prefix(root)?.to_string_lossy().as_bytes());
            digest.update(bytes.len().to_le_bytes());
            digest.update(&bytes);
        }
    }
    Ok(digits(&digest.finalize()))
}

/// The file itself, or all files below the folder, in an order that is the same everywhere.
pub(crate) fn files_under(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = fs::read_dir(path)
        .map_err(|error| format!("{}: {error}", path.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        files.extend(files_under(&entry)?);
    }
    Ok(files)
}

fn digits(digest: &[u8]) -> String {
    let mut text = String::new();
    for byte in &digest[..DIGITS / 2] {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_short_and_follows_the_content() {
        assert_eq!(of_bytes(b"a").len(), DIGITS);
        assert_eq!(of_bytes(b"a"), of_bytes(b"a"));
        assert_ne!(of_bytes(b"a"), of_bytes(b"b"));
    }

    #[test]
    fn files_come_in_order_and_extra_counts() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = files_under(&root.join("src"))?;
        assert!(files.is_sorted());
        assert!(files.contains(&root.join("src/fingerprint.rs")));
        assert_ne!(of_files(root, &["src"], "dev")?, of_files(root, &["src"], "release")?);
        Ok(())
    }
}
