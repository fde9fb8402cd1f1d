//! Which [`Mode`] holds now: from the count of replicas and from what the shared store says of itself.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::model::{Kept, Mode};
use crate::redis;

/// After a crash the old process's row counts for ten seconds more: until it is gone, "several
/// replicas without a shared store" may be a false alarm.
const SETTLED_AFTER: Duration = Duration::from_secs(15);

/// Knows the mode at any time. Clones know the same.
#[derive(Clone)]
pub struct Modes {
    replicas: watch::Receiver<u32>,
    /// None where no shared store is configured.
    redis: Option<watch::Receiver<redis::Mode>>,
}

impl Modes {
    pub fn new(replicas: watch::Receiver<u32>, redis: Option<watch::Receiver<redis::Mode>>) -> Self {
        Self { replicas, redis }
    }

    pub fn now(&self) -> Mode {
        let replicas = *self.replicas.borrow();
        let kept = match self.redis.as_ref().map(|mode| *mode.borrow()) {
            None if replicas == 1 => Kept::Single,
            None => Kept::PerInstance,
            Some(redis::Mode::Up) => Kept::Redis,
            Some(redis::Mode::Away { .. }) => Kept::RedisAway,
        };
        Mode { kept, replicas }
    }

    /// Says in the log when the mode turns bad, and when it is good again, until `stop`.
    pub async fn tell(mut self, stop: CancellationToken) {
        let mut told = None;
        let watch = async {
            loop {
                let mode = self.now();
                if mode.kept == Kept::PerInstance && told != Some(mode.kept) {
                    tokio::time::sleep(SETTLED_AFTER).await;
                }
                let mode = self.now();
                match (told, mode.is_bad()) {
                    (told, true) if told != Some(mode.kept) => {
                        tracing::warn!(
                            mode = mode.kept.as_str(),
                            replicas = mode.replicas,
                            "{}",
                            mode.sentence()
                        );
                    }
                    (Some(Kept::RedisAway | Kept::PerInstance), false) => {
                        tracing::info!(
                            mode = mode.kept.as_str(),
                            replicas = mode.replicas,
                            "{}",
                            mode.sentence()
                        );
                    }
                    _ => {}
                }
                told = Some(mode.kept);
                if !self.changed().await {
                    return;
                }
            }
        };
        stop.run_until_cancelled(watch).await;
    }

    /// False when nothing can change any more.
    async fn changed(&mut self) -> bool {
        let redis = async {
            match &mut self.redis {
                Some(mode) => mode.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Ok(()) = self.replicas.changed() => true,
            Ok(()) = redis => true,
            else => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn the_mode_follows_both() {
        let (replicas, count) = watch::channel(1);
        let away = redis::Mode::Away { since: Timestamp(0) };
        let mut told = Vec::new();
        for (n, state) in [
            (1, None),
            (3, None),
            (3, Some(redis::Mode::Up)),
            (1, Some(redis::Mode::Up)),
            (3, Some(away)),
            (1, Some(away)),
        ] {
            replicas.send_replace(n);
            let modes = Modes::new(count.clone(), state.map(|state| watch::channel(state).1));
            told.push((modes.now().sentence(), modes.now().is_bad()));
        }
        let told: Vec<_> = told.iter().map(|(sentence, bad)| (sentence.as_str(), *bad)).collect();
        assert_eq!(
            told,
            [
                ("limits are kept in this process", false),
                ("limits are per instance: 3 replicas run without a shared store", true),
                ("limits shared through Redis · 3 replicas", false),
                ("limits shared through Redis · 1 replica", false),
                ("Redis does not answer: each of 3 replicas holds a third of every limit", true),
                ("Redis does not answer: limits are kept in this process", true),
            ]
        );
    }
}
