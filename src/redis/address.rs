//! `REDIS_URL`, parsed.

use std::fmt;

use redis::{ConnectionInfo, IntoConnectionInfo as _};

/// Where Redis is; the whole address, password and all, which nothing shows.
#[derive(Clone)]
pub struct RedisUrl(pub(super) ConnectionInfo);

impl RedisUrl {
    /// # Errors
    /// What is accepted, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        ["redis://", "rediss://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
            .then(|| text.into_connection_info().ok())
            .flatten()
            .map(Self)
            .ok_or_else(|| "redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS".into())
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisUrl(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_redis_and_are_not_shown() {
        for good in
            ["redis://localhost", "redis://:secret@10.0.0.1:6380/2", "rediss://me:secret@redis.example"]
        {
            assert_eq!(format!("{:?}", RedisUrl::parse(good).unwrap()), "RedisUrl(…)");
        }
        for bad in ["localhost:6379", "http://localhost", "redis://", "redis://host:port", "redis://h/db", ""]
        {
            let accepted = RedisUrl::parse(bad).map(drop).unwrap_err();
            assert!(accepted.starts_with("redis://USER"), "{bad}");
        }
    }
}
