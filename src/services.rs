//! The running service: its parts, built once and handed to routes, pages and commands.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::config::Config;
use crate::directory::Directory;
use crate::identity::Identity;
use crate::ledger::Ledger;
use crate::limits::{Limiter, MemoryStore, RateLimitStore, SharedStore};
use crate::providers::{Pool, RedisLeases, SharedLeases};
use crate::redis::Redis;
use crate::replicas::{Modes, Replicas};
use crate::reports::Reports;
use crate::store::Store;

/// How long a stopping server waits for requests under way.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// Cheap to clone: each part is a handle.
#[derive(Clone, FromRef)]
pub struct Services {
    pub config: Arc<Config>,
    pub clock: SharedClock,
    pub store: Store,
    pub identity: Identity,
    pub directory: Directory,
    pub limiter: Limiter,
    pub ledger: Ledger,
    pub pool: Pool,
    pub reports: Reports,
    /// Where limits are held across replicas, when one is configured.
    pub redis: Option<Redis>,
    /// To be joined when the server listens.
    pub replicas: Replicas,
    /// Where the limits are kept, as things stand.
    pub modes: Modes,
    /// Cancelled when the server is asked to stop: streams without an end of their own end then.
    pub stopping: CancellationToken,
}

impl Services {
    /// Starts the parts that a server needs, over a store that is open.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn start(config: Config, store: Store, clock: SharedClock, demo: bool) -> Result<Self, String> {
        let stopping = CancellationToken::new();
        let ledger = Ledger::start(store.clone(), clock.clone());
        let redis = match &config.redis {
            Some(url) => Some(Redis::start(url, clock.clone()).await?),
            None => None,
        };
        let replicas = Replicas::new(store.clone(), clock.clone(), ledger.replica().clone());
        let shared = redis.as_ref().map(|redis| {
            Arc::new(RedisLeases::start(redis.clone(), replicas.count())) as Arc<dyn SharedLeases>
        });
        let rates: Arc<dyn RateLimitStore> = match &redis {
            Some(redis) => Arc::new(SharedStore::start(redis.clone(), clock.clone(), replicas.count())),
            None => Arc::new(MemoryStore::default()),
        };
        let modes = Modes::new(replicas.count(), redis.as_ref().map(Redis::watch));
        tokio::spawn(modes.clone().tell(stopping.clone()));
        tokio::spawn(stopping.clone().run_until_cancelled_owned(
            ledger.clone().announce_what_others_write(store.changes(), clock.clone()),
        ));
        let limiter = Limiter::new(
            store.clone(),
            clock.clone(),
            ledger.clone(),
            rates,
            config.defaults,
            config.budget_mode,
        );
        let pool = crate::providers::start(&config, &store, &clock, &ledger, demo, shared).await?;
        let identity = Identity::new(store.clone(), clock.clone(), config.production)
            .with_trusted_proxies(config.trusted_proxies.clone());
        tokio::spawn(stopping.clone().run_until_cancelled_owned(identity.clone().keep_tidy()));
        tokio::spawn(pool.clone().run(stopping.clone()));
        Ok(Self {
            identity,
            directory: Directory::new(store.clone(), clock.clone()),
            reports: Reports::new(store.clone(), clock.clone(), config.defaults),
            config: Arc::new(config),
            clock,
            store,
            limiter,
            ledger,
            pool,
            redis,
            replicas,
            modes,
            stopping,
        })
    }

    /// Waits for requests under way, writes what is queued and closes the database.
    pub async fn stop(&self) {
        if !self.ledger.close(SHUTDOWN).await {
            tracing::warn!("some requests had not ended; their usage so far was not recorded");
        }
        if let Err(error) = self.identity.tidy().await {
            tracing::warn!(%error, "when sessions and keys were last used was not recorded");
        }
        self.replicas.leave().await;
        self.store.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::clock::ManualClock;
    use crate::limits::Who;
    use crate::model::{Route, Timestamp};
    use crate::redis::testing::{Server, until};
    use crate::redis::{Mode, Redis};
    use crate::store::testing::{Fresh, fresh};
    use crate::telemetry;

    async fn admitted(services: &Services, of: u32) -> u32 {
        let mut admitted = 0;
        for _ in 0..of {
            let eve = Who { workspace: "acme".into(), user: "eve".into() };
            admitted += u32::from(services.limiter.admit(eve, Route::Chat, 10).await.is_ok());
        }
        admitted
    }

    #[tokio::test]
    async fn servers_over_one_redis_hold_one_limit_and_their_metrics_tell_of_it() {
        let mut server = Server::start().await;
        let Fresh { store, folder: _folder } = fresh().await;
        let vars = HashMap::from([
            ("REDIS_URL".to_owned(), format!("redis://127.0.0.1:{}", server.port())),
            ("LLM_RATE_PER_MINUTE".to_owned(), "5".to_owned()),
            ("TOLLKEEPER_SECRET_KEY".to_owned(), "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=".to_owned()),
        ]);
        let config = Config::from_env(&vars).unwrap();
        let mut servers = Vec::new();
        for _ in 0..2 {
            let clock = ManualClock::new(Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap());
            servers.push(Services::start(config.clone(), store.clone(), clock, false).await.unwrap());
        }
        let sum = admitted(&servers[0], 3).await + admitted(&servers[1], 10).await;
        // On a machine that is too busy for Redis to answer in time some are decided without it.
        let local: u64 = servers.iter().filter_map(|s| s.redis.as_ref()).map(Redis::local_decisions).sum();
        assert!(sum >= 5 && u64::from(sum) <= 5 + local, "{sum} admitted, {local} decided locally");

        let redis = servers[0].redis.clone().unwrap();
        until("Redis is up", || redis.mode() == Mode::Up).await;
        assert!(telemetry::render(&servers[0]).await.unwrap().contains("\ntollkeeper_redis_up 1\n"));
        server.kill();
        assert!(admitted(&servers[0], 20).await <= 5);
        let metrics = telemetry::render(&servers[0]).await.unwrap();
        assert!(metrics.contains("\ntollkeeper_redis_up 0\n"), "{metrics}");
        assert!(!metrics.contains("tollkeeper_redis_local_decisions_total 0\n"), "{metrics}");
    }
}
