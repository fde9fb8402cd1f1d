//! Redis (or Valkey): one connection that is shared, and that nobody waits for.
//!
//! A script answers within [`REPLY_WITHIN`] or its caller goes on without Redis. After a few failures in a
//! row, or at once when the connection is lost or the server can't write, Redis counts as away: calls fail
//! without being sent, and a task in the background looks for it until it takes writes again. What to do while it is
//! away is the callers' business.

mod address;
mod script;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, RedisError, Script, ScriptInvocation,
    ServerErrorKind,
};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::clock::SharedClock;
use crate::model::Timestamp;

pub use address::RedisUrl;
#[cfg(test)]
pub(crate) use script::TEST_CLOCK;
pub(crate) use script::{CLOCK, escaped, exact, script};

/// Redis answers a script in well under a millisecond. This is far above what a busy machine adds to that, and
/// far below what a caller of a model notices.
const REPLY_WITHIN: Duration = Duration::from_millis(50);
/// For a connection with its handshake.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// Scripts in a row without an answer after which Redis counts as away.
const FAILURES_IN_A_ROW: u32 = 3;
/// Between two looks for a Redis that is away.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Between two probes of a Redis that is there, so that its loss is seen while nobody calls.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Writes, since a server that only reads is of no use here; gone after a second.
const PROBE: &str = "return redis.call('SET', KEYS[1], '1', 'PX', 1000)";
const PROBE_KEY: &str = "tollkeeper:probe";

/// A handle; clones share the connection.
#[derive(Clone)]
pub struct Redis(Arc<Inner>);

struct Inner {
    client: Client,
    clock: SharedClock,
    link: Mutex<Link>,
    mode: watch::Sender<Mode>,
    reply_within: Duration,
    failures: AtomicU64,
    local_decisions: AtomicU64,
}

/// Whether Redis takes part in decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Up,
    Away { since: Timestamp },
}

#[derive(Default)]
struct Link {
    /// None while Redis is away.
    connection: Option<MultiplexedConnection>,
    /// Of the connection: what an earlier one still reports says nothing about this one.
    number: u64,
    failures_in_a_row: u32,
}

/// Redis did not answer in time, could not do it, or is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Redis did not answer")]
pub struct NoAnswer;

impl Redis {
    /// Connects, and keeps connecting for as long as the process lives. A Redis that is away now is used
    /// as soon as it comes.
    ///
    /// # Errors
    /// A sentence for the operator, for an address that can't be used at all.
    pub async fn start(url: &RedisUrl, clock: SharedClock) -> Result<Self, String> {
        Self::start_with(url, clock, REPLY_WITHIN).await
    }

    async fn start_with(url: &RedisUrl, clock: SharedClock, reply_within: Duration) -> Result<Self, String> {
        // For TLS. Fails only where the process has one already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = Client::open(url.0.clone())
            .map_err(|_| "REDIS_URL: a connection to such an address can't be made".to_owned())?;
        let (mode, _) = watch::channel(Mode::Away { since: clock.now() });
        let redis = Redis(Arc::new(Inner {
            client,
            clock,
            link: Mutex::default(),
            mode,
            reply_within,
            failures: AtomicU64::new(0),
            local_decisions: AtomicU64::new(0),
        }));
        if let Err(why) = redis.connect().await {
            tracing::warn!(why, "Redis (REDIS_URL) does not answer; it is used as soon as it does");
        }
        tokio::spawn(redis.clone().keep_connected());
        Ok(redis)
    }

    pub fn mode(&self) -> Mode {
        *self.0.mode.borrow()
    }

    /// Hears of every change of the mode; a loss while nobody calls is seen within a second.
    pub fn watch(&self) -> watch::Receiver<Mode> {
        self.0.mode.subscribe()
    }

    /// Calls that got no answer, since the process started; calls while Redis counts as away are not made.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Decisions that this replica made by itself although Redis is configured, since the process started.
    pub fn local_decisions(&self) -> u64 {
        self.0.local_decisions.load(Ordering::Relaxed)
    }

    pub(crate) fn count_local_decision(&self) {
        self.0.local_decisions.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a script, once. Where no answer comes it may have run nevertheless.
    pub(crate) async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, NoAnswer> {
        let (connection, number) = {
            let link = self.0.link.lock();
            (link.connection.clone(), link.number)
        };
        let mut connection = connection.ok_or(NoAnswer)?;
        match timeout(self.0.reply_within, script.invoke_async(&mut connection)).await {
            Ok(Ok(answer)) => {
                self.succeeded(number);
                Ok(answer)
            }
            Ok(Err(error)) => {
                self.failed(number, &reason(&error), is_lasting(&error));
                Err(NoAnswer)
            }
            Err(_) => {
                self.failed(number, "no answer in time", false);
                Err(NoAnswer)
            }
        }
    }

    fn succeeded(&self, number: u64) {
        let mut link = self.0.link.lock();
        if link.number == number {
            link.failures_in_a_row = 0;
        }
    }

    fn failed(&self, number: u64, why: &str, lasting: bool) {
        self.0.failures.fetch_add(1, Ordering::Relaxed);
        let mut link = self.0.link.lock();
        if link.number != number || link.connection.is_none() {
            return;
        }
        link.failures_in_a_row += 1;
        if lasting || link.failures_in_a_row >= FAILURES_IN_A_ROW {
            link.connection = None;
            self.0.mode.send_replace(Mode::Away { since: self.0.clock.now() });
            tracing::warn!(why, "Redis does not answer any more");
        } else {
            tracing::debug!(why, "a call of Redis failed");
        }
    }

    async fn keep_connected(self) {
        let probe = Script::new(PROBE);
        let probe = probe.key(PROBE_KEY);
        let mut mode = self.watch();
        loop {
            if self.mode() == Mode::Up {
                // Ends early where a call finds it away; the other end lives in the handle that this task holds.
                let _ = timeout(CHECK_EVERY, mode.changed()).await;
                let _ = self.run::<()>(&probe).await;
            } else {
                tokio::time::sleep(LOOK_EVERY).await;
                if self.connect().await.is_ok() {
                    tracing::info!("Redis answers again");
                }
            }
        }
    }

    /// A new connection to a server that takes writes.
    async fn connect(&self) -> Result<(), String> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connecting = self.0.client.get_multiplexed_async_connection_with_config(&config);
        let connection = timeout(CONNECT_WITHIN, connecting)
            .await
            .map_err(|_| "no connection in time".to_owned())?
            .map_err(|error| reason(&error))?;
        let (script, mut probe_connection) = (Script::new(PROBE), connection.clone());
        let probe = script.key(PROBE_KEY);
        timeout(self.0.reply_within, probe.invoke_async::<()>(&mut probe_connection))
            .await
            .map_err(|_| "no answer in time".to_owned())?
            .map_err(|error| reason(&error))?;
        let mut link = self.0.link.lock();
        link.connection = Some(connection);
        link.number += 1;
        link.failures_in_a_row = 0;
        self.0.mode.send_replace(Mode::Up);
        Ok(())
    }
}

/// Whether the next call would fail as well: the connection is gone, or the server is not one that takes writes.
fn is_lasting(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(kind) => {
            !matches!(kind, ServerErrorKind::ResponseError | ServerErrorKind::NoScript)
        }
        // Errors of commands alone are of one key: it holds something that isn't ours.
        ErrorKind::Extension => error.code() != Some("WRONGTYPE"),
        _ => error.is_unrecoverable_error(),
    }
}

/// What happened, without the address or a key, both of which an error's own text may name.
fn reason(error: &RedisError) -> String {
    error.code().unwrap_or_else(|| error.category()).to_owned()
}
