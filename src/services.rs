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
        let replicas =
            Replicas::start(store.clone(), clock.clone(), ledger.replica().clone(), stopping.clone()).await;
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
