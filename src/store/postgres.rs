//! PostgreSQL 14 and later: one pool for reading and writing.

use std::str::FromStr as _;

use sqlx::Executor as _;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;

use super::{Engine, Store, pool};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// Held to the end of the transaction. Read-then-write changes of settings, sessions and the audit
/// trail's chain are then as serial as SQLite makes them. Any number does; this one is ours.
pub(super) const ONE_AT_A_TIME: &str = "SELECT pg_advisory_xact_lock(7310573)";

const CONNECTIONS: u32 = 16;

/// Whether sqlx can read it.
pub(super) fn is_address(text: &str) -> bool {
    PgConnectOptions::from_str(text).is_ok_and(|options| !options.get_host().is_empty())
        && text.split("://").nth(1).is_some_and(|rest| !rest.is_empty())
}

pub(super) async fn open(address: &str) -> Result<Store, String> {
    let both = pool(CONNECTIONS)
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
        .connect(address)
        .await
        .map_err(|e| {
            format!("DATABASE_URL: the PostgreSQL database can't be opened: {}", without_address(&e))
        })?;
    MIGRATIONS
        .run(&both)
        .await
        .map_err(|e| format!("DATABASE_URL: the PostgreSQL database can't be brought up to date: {e}"))?;
    Ok(Store { engine: Engine::Postgres, read: both.clone(), write: both })
}

/// The cause in one line; a driver's error does not repeat the address.
fn without_address(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::PoolTimedOut => "it does not answer".into(),
        error => error.to_string().replace(['\n', '\r'], " "),
    }
}
