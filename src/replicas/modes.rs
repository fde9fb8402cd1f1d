//! Which [`Mode`] holds now: from the count of replicas and from what the shared store says of itself.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::model::{Kept, Mode};

/// After a crash the old process's row counts for ten seconds more: until it is gone, "several
/// replicas without a shared store" may be a false alarm.
const SETTLED_AFTER: Duration = Duration::from_secs(15);

/// The store of limits that replicas share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// None is configured.
    None,
    Up,
    Away,
}

/// Knows the mode at any time. Clones know the same.
#[derive(Clone)]
pub struct Modes {
    replicas: watch::Receiver<u32>,
    shared: watch::Receiver<Shared>,
}

impl Modes {
    pub fn new(replicas: watch::Receiver<u32>, shared: watch::Receiver<Shared>) -> Self {
        Self { replicas, shared }
    }

    pub fn now(&self) -> Mode {
        let replicas = *self.replicas.borrow();
        let kept = match *self.shared.borrow() {
            Shared::None if replicas == 1 => Kept::Single,
            Shared::None => Kept::PerInstance,
            Shared::Up => Kept::Redis,
            Shared::Away => Kept::RedisAway,
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
        tokio::select! {
            Ok(()) = self.replicas.changed() => true,
            Ok(()) = self.shared.changed() => true,
            else => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_follows_both() {
        let (replicas, count) = watch::channel(1);
        let (shared, state) = watch::channel(Shared::None);
        let modes = Modes::new(count, state);
        let mut told = Vec::new();
        for (n, state) in [
            (1, Shared::None),
            (3, Shared::None),
            (3, Shared::Up),
            (1, Shared::Up),
            (3, Shared::Away),
            (1, Shared::Away),
        ] {
            replicas.send_replace(n);
            shared.send_replace(state);
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
