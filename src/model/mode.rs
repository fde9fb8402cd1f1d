//! Where the limits are kept: what an operator needs to know of it, told the same everywhere.

use serde::{Deserialize, Serialize};

/// Told by `/readyz`, the metrics, the pages' footer and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    pub kept: Kept,
    /// The server processes that share the database, this one included.
    pub replicas: u32,
}

/// By whom rates and reservations are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// By this process, which is the only one.
    Single,
    /// By Redis, for all replicas together.
    Redis,
    /// By each replica, a share of every limit, until Redis answers again.
    RedisAway,
    /// By each replica for itself, every limit whole: nobody configured a shared store.
    PerInstance,
}

impl Kept {
    pub const ALL: [Kept; 4] = [Kept::Single, Kept::Redis, Kept::RedisAway, Kept::PerInstance];

    /// As JSON and the metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kept::Single => "single",
            Kept::Redis => "redis",
            Kept::RedisAway => "redis-away",
            Kept::PerInstance => "per-instance",
        }
    }
}

impl Mode {
    /// Whether limits are held less well than the operator may believe.
    pub fn is_bad(self) -> bool {
        matches!(self.kept, Kept::RedisAway | Kept::PerInstance)
    }

    pub fn sentence(self) -> String {
        let n = self.replicas;
        match self.kept {
            Kept::Single => "limits are kept in this process".into(),
            Kept::Redis if n == 1 => "limits shared through Redis · 1 replica".into(),
            Kept::Redis => format!("limits shared through Redis · {n} replicas"),
            Kept::RedisAway if n == 1 => "Redis does not answer: limits are kept in this process".into(),
            Kept::RedisAway => {
                format!("Redis does not answer: each of {n} replicas holds {} of every limit", share(n))
            }
            Kept::PerInstance => format!("limits are per instance: {n} replicas run without a shared store"),
        }
    }
}

/// One of so many equal parts.
fn share(parts: u32) -> String {
    match parts {
        2 => "half".into(),
        3 => "a third".into(),
        4 => "a quarter".into(),
        n => format!("1/{n}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_json_and_metrics_agree() {
        for kept in Kept::ALL {
            assert_eq!(serde_json::to_value(kept).unwrap(), kept.as_str());
        }
    }
}
