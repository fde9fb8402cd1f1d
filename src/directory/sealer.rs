//! How `apply` keeps a provider's key: sealed, by whoever holds the secret key.

use crate::providers::SecretKey;

/// Seals what must not be readable in the database. The id of the row is bound in, so that a sealed
/// value opens in its own row alone.
pub trait Sealer: Send + Sync {
    /// # Errors
    /// A sentence for the operator, without the plain text.
    fn seal(&self, row_id: &str, plain: &str) -> Result<String, String>;

    /// None where it was sealed under another key, or for another row.
    fn open(&self, row_id: &str, sealed: &str) -> Option<String>;
}

impl Sealer for SecretKey {
    fn seal(&self, row_id: &str, plain: &str) -> Result<String, String> {
        Ok(SecretKey::seal(self, row_id, plain))
    }

    fn open(&self, row_id: &str, sealed: &str) -> Option<String> {
        SecretKey::open(self, row_id, sealed).ok()
    }
}
