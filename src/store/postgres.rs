//! PostgreSQL 14 and later: a pool for reading and one for writing, so that a request's reads never queue
//! behind writers that wait for their turn.
//!
//! What happens when it is away: a lookup fails within [`LOOKUP_WITHIN`], a connection that a statement
//! got no answer on is closed, and one that has lain idle is tried before it is used, so that a restart
//! leaves no stale ones behind.

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AnyConnection, Connection as _, Executor as _};

use super::changes::Source;
use super::{Engine, Store, pool, within};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// Held to the end of the transaction. Read-then-write changes of settings, sessions and the audit
/// trail's chain are then as serial as SQLite makes them. Any number does; this one is ours.
pub(super) const ONE_AT_A_TIME: &str = "SELECT pg_advisory_xact_lock(7310573)";

/// All statements of such a transaction see what was committed before its first.
pub(super) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// How long a request waits for what it can't be decided without: microseconds in health, so this is
/// an outage.
pub(super) const LOOKUP_WITHIN: Duration = Duration::from_secs(1);

const READERS: u32 = 12;
const WRITERS: u32 = 6;
/// One that was used a moment ago is good; trying every one would cost each statement a round trip.
const TRY_AFTER_IDLE: Duration = Duration::from_millis(100);
/// A connection that can't be tried within this is closed.
const TRY_WITHIN: Duration = Duration::from_millis(500);

/// Whether sqlx can read it.
pub(super) fn is_address(text: &str) -> bool {
    PgConnectOptions::from_str(text).is_ok_and(|options| !options.get_host().is_empty())
        && text.split("://").nth(1).is_some_and(|rest| !rest.is_empty())
}

/// Lifts, until the transaction's end, the timeouts that every connection begins with.
pub(super) const WITHOUT_HURRY: &[&str] =
    &["SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0"];

pub(super) async fn open(address: &str) -> Result<Store, String> {
    let opened = async {
        // A transaction given up on a machine that is gone must not keep its place until TCP notices too.
        let write = options(WRITERS).after_release(|connection, _| Box::pin(answers(connection)));
        Ok((options(READERS).connect(address).await?, write.connect(address).await?))
    };
    let (read, write) = opened.await.map_err(|error| not_opened(&error))?;
    migrate(address)
        .await
        .map_err(|e| format!("the PostgreSQL database can't be brought up to date: {e}"))?;
    Ok(Store { engine: Engine::Postgres, read, write, changes: Source::Notifications(address.into()) })
}

/// On a connection of its own: an index over millions of rows takes longer than a statement may otherwise.
async fn migrate(address: &str) -> Result<(), MigrateError> {
    let mut connection = AnyConnection::connect(address).await?;
    MIGRATIONS.run(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

pub(super) async fn open_unchanged(address: &str) -> Result<Store, String> {
    let both = options(1).connect(address).await.map_err(|error| not_opened(&error))?;
    let changes = Source::Notifications(address.into());
    Ok(Store { engine: Engine::Postgres, read: both.clone(), write: both, changes })
}

fn not_opened(error: &sqlx::Error) -> String {
    format!("the PostgreSQL database can't be opened: {}", without_address(error))
}

/// Whether a connection still is one; an error where it isn't, so that it is closed without ceremony.
async fn answers(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    within(TRY_WITHIN, connection.ping()).await.map(|()| true)
}

fn options(size: u32) -> AnyPoolOptions {
    pool(size)
        .before_acquire(|connection, known| {
            Box::pin(async move {
                if known.idle_for < TRY_AFTER_IDLE { Ok(true) } else { answers(connection).await }
            })
        })
        .after_connect(|connection, _| {
            Box::pin(async move {
                // A statement that takes longer fails rather than holding its request; days read as ISO text.
                connection.execute("SET statement_timeout = '10s'").await?;
                connection.execute("SET idle_in_transaction_session_timeout = '30s'").await?;
                connection.execute("SET datestyle = 'ISO, YMD'").await?;
                connection.execute("SET timezone = 'UTC'").await?;
                Ok(())
            })
        })
}

/// The cause in one line; a driver's error does not repeat the address.
fn without_address(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::PoolTimedOut => "it does not answer".into(),
        error => error.to_string().replace(['\n', '\r'], " "),
    }
}
