//! Identifiers, and the form that ids and names have to have.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

id! {
    /// The tenant that owns sources, dashboards, usage and limits.
    WorkspaceId
}
id! {
    /// A person; stable over sessions, keys and password changes.
    UserId
}

/// The longest id, in characters.
pub const ID_MAX: usize = 128;
/// The longest name, in characters of any script.
pub const NAME_MAX: usize = 200;
/// The longest id of an upstream's model, in characters.
pub const MODEL_ID_MAX: usize = 200;

/// Whether `text` is an id as the directory file takes it: `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`.
pub fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= ID_MAX
        && bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Whether `text` can be a name: something to read, at most [`NAME_MAX`] characters, no control characters.
pub fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= NAME_MAX && !text.chars().any(char::is_control)
}

/// Whether `text` can be an upstream's model id: printable, no blanks, at most [`MODEL_ID_MAX`] characters.
pub fn is_model_id(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= MODEL_ID_MAX
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// The form in which an e-mail address is stored and compared, if it looks like one.
pub fn normal_email(text: &str) -> Option<String> {
    let text = text.trim();
    let (local, domain) = text.rsplit_once('@')?;
    let fits = !local.is_empty()
        && !domain.is_empty()
        && text.len() <= 254
        && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    fits.then(|| text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_contracts_form() {
        for good in ["a", "acme", "A1._-", &"x".repeat(128)] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["", ".a", "-a", "a b", "ü", "a/b", "a\0", &"x".repeat(129)] {
            assert!(!is_id(bad), "{bad}");
        }
    }

    #[test]
    fn emails_compare_without_case() {
        assert_eq!(normal_email(" Ada@Example.com "), Some("ada@example.com".into()));
        for bad in ["", "ada", "@x", "ada@", "a b@c"] {
            assert_eq!(normal_email(bad), None, "{bad}");
        }
    }
}
