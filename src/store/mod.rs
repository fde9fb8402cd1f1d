//! The database: one writer, many readers, the same SQL text for every engine.
//!
//! Statements use `$1` binds and what SQLite and PostgreSQL both speak, through sqlx's `Any`
//! driver: columns come back as integers, text or null, and sums are `CAST(… AS BIGINT)`. What the
//! engines do differently stays in this module, so that callers never ask which one it is.

mod sqlite;

use std::time::Duration;

use sqlx::any::{AnyPoolOptions, AnyRow};
use sqlx::{Any, AnyPool};

use crate::model::Error;

pub type Tx = sqlx::Transaction<'static, Any>;
pub type Row = AnyRow;

static SQLITE_MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("migrations/sqlite");

/// Where the data is: `DATABASE_URL`, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    Sqlite(std::path::PathBuf),
}

impl DatabaseUrl {
    /// # Errors
    /// What is accepted, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("sqlite://") {
            Some(path) if !path.is_empty() => Ok(DatabaseUrl::Sqlite(path.into())),
            _ => Err("sqlite://PATH".into()),
        }
    }
}

#[derive(Clone)]
pub struct Store {
    read: AnyPool,
    write: AnyPool,
}

impl Store {
    /// Opens the database, creating it where it is missing, and applies the migrations.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn open(url: &DatabaseUrl) -> Result<Self, String> {
        sqlx::any::install_default_drivers();
        match url {
            DatabaseUrl::Sqlite(path) => sqlite::open(path).await,
        }
    }

    /// For statements that only read.
    pub fn read(&self) -> &AnyPool {
        &self.read
    }

    /// Begins a transaction that may write; others wait for its end.
    pub async fn begin(&self) -> Result<Tx, sqlx::Error> {
        self.write.begin_with(sqlite::BEGIN).await
    }

    /// Whether the database answers a read and could take a write.
    pub async fn ping(&self) -> Result<(), sqlx::Error> {
        sqlx::query("SELECT 1").execute(&self.read).await.map(drop)
    }

    /// Closes both pools; the last writer folds the journal into the database.
    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}

fn pool(size: u32) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(Duration::from_secs(10))
        .test_before_acquire(false)
}

/// What a caller is told when the database fails; the cause goes to the log.
pub fn failed(error: &sqlx::Error) -> Error {
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => {
            tracing::error!(error = %error, "the database does not answer");
            Error::Unavailable("the database does not answer at the moment; try again".into())
        }
        _ => {
            tracing::error!(error = %error, "a database statement failed");
            Error::Internal
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        failed(&error)
    }
}

/// A count as the tables have it.
pub fn to_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A count from a table; what others wrote below zero counts as nothing.
pub fn to_u64(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}
