//! The database: one SQL text for SQLite and PostgreSQL, through sqlx's `Any` driver.
//!
//! Statements use `$1` binds and what both engines speak: columns come back as integers, text or
//! null, sums are `CAST(… AS BIGINT)`, a day is compared with `date($1)` and read as `CAST(day AS TEXT)`.
//! What the engines do differently stays in this module, so that callers never ask which one it is.

mod postgres;
mod sqlite;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::any::{AnyPoolOptions, AnyRow};
use sqlx::{Any, AnyPool};

use crate::model::Error;

pub type Tx = sqlx::Transaction<'static, Any>;
pub type Row = AnyRow;

/// Where the data is: `DATABASE_URL`, parsed.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    Sqlite(PathBuf),
    /// The whole address, password and all.
    Postgres(String),
}

impl DatabaseUrl {
    /// # Errors
    /// What is accepted, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite://").filter(|path| !path.is_empty()) {
            return Ok(DatabaseUrl::Sqlite(path.into()));
        }
        let postgres = text.starts_with("postgres://") || text.starts_with("postgresql://");
        if postgres && postgres::is_address(text) {
            return Ok(DatabaseUrl::Postgres(text.to_owned()));
        }
        Err("sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE".into())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseUrl::Sqlite(path) => write!(f, "Sqlite({})", path.display()),
            DatabaseUrl::Postgres(_) => f.write_str("Postgres(…)"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Sqlite,
    Postgres,
}

#[derive(Clone)]
pub struct Store {
    engine: Engine,
    read: AnyPool,
    write: AnyPool,
}

impl Store {
    /// Opens the database, creating a file that is missing, and applies the migrations.
    ///
    /// # Errors
    /// A sentence for the operator, without the address.
    pub async fn open(url: &DatabaseUrl) -> Result<Self, String> {
        sqlx::any::install_default_drivers();
        match url {
            DatabaseUrl::Sqlite(path) => sqlite::open(path).await,
            DatabaseUrl::Postgres(address) => postgres::open(address).await,
        }
    }

    /// For statements that only read.
    pub fn read(&self) -> &AnyPool {
        &self.read
    }

    /// Begins a transaction that may write. All of them, in every process, run one after the other,
    /// so what one reads is what the one before it left.
    pub async fn begin(&self) -> Result<Tx, sqlx::Error> {
        match self.engine {
            Engine::Sqlite => self.write.begin_with(sqlite::BEGIN).await,
            Engine::Postgres => {
                let mut tx = self.write.begin().await?;
                sqlx::query(postgres::ONE_AT_A_TIME).execute(&mut *tx).await?;
                Ok(tx)
            }
        }
    }

    /// Begins a transaction that only adds to counters, in the order of their keys: where the engine
    /// can, it runs beside others.
    pub async fn begin_counting(&self) -> Result<Tx, sqlx::Error> {
        match self.engine {
            Engine::Sqlite => self.begin().await,
            Engine::Postgres => self.write.begin().await,
        }
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), sqlx::Error> {
        sqlx::query("SELECT 1").execute(&self.read).await.map(drop)
    }

    /// Closes the connections; SQLite's last writer folds the journal into the database.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sets_of_migrations_have_the_same_versions() {
        let versions = |set: &sqlx::migrate::Migrator| {
            set.iter().map(|m| (m.version, m.description.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(versions(&sqlite::MIGRATIONS), versions(&postgres::MIGRATIONS));
    }

    #[test]
    fn addresses_are_of_one_of_two_engines_and_never_shown() {
        assert!(matches!(DatabaseUrl::parse("sqlite://a/b.db"), Ok(DatabaseUrl::Sqlite(_))));
        let postgres = DatabaseUrl::parse("postgres://u:hush@localhost:5432/x").unwrap();
        assert!(!format!("{postgres:?}").contains("hush"));
        for bad in ["", "sqlite://", "mysql://localhost/x", "postgres://", "postgres://h:port/x", "data.db"] {
            assert!(DatabaseUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn totals_follow_every_edit_of_the_ledger() {
        let fresh = testing::fresh().await;
        let store = &fresh.store;
        let totals = async || {
            sqlx::query_as::<_, (i64, i64, i64)>(
                "SELECT input_tokens, output_tokens, requests FROM llm_usage_totals ORDER BY model",
            )
            .fetch_all(store.read())
            .await
            .unwrap()
        };
        for statement in [
            "INSERT INTO llm_usage VALUES ('w', '2026-01-01', 'chat', 'm', 10, 5, 1, 0, 0)",
            "INSERT INTO llm_usage VALUES ('w', '2026-01-02', 'chat', 'm', 1, 2, 1, 0, 0)",
            "UPDATE llm_usage SET input_tokens = input_tokens + 7 WHERE day = '2026-01-02'",
        ] {
            fresh.run(statement).await.unwrap();
        }
        assert_eq!(totals().await, [(18, 7, 2)]);
        fresh.run("DELETE FROM llm_usage WHERE day = '2026-01-01'").await.unwrap();
        assert_eq!(totals().await, [(8, 2, 1)]);
    }

    #[tokio::test]
    async fn limits_that_others_write_are_checked_and_dated() {
        let fresh = testing::fresh().await;
        fresh
            .run("INSERT INTO workspace_limits (workspace_id, rate_per_minute) VALUES ('acme', 5)")
            .await
            .unwrap();
        let (rate, budget, dated): (Option<i64>, Option<i64>, i64) = sqlx::query_as(
            "SELECT rate_per_minute, daily_token_budget, CASE WHEN updated_at IS NULL THEN 0 ELSE 1 END
             FROM workspace_limits WHERE workspace_id = $1",
        )
        .bind("acme")
        .fetch_one(fresh.store.read())
        .await
        .unwrap();
        assert_eq!((rate, budget, dated), (Some(5), None, 1));
        for bad in
            ["rate_per_minute = -1", "rate_per_minute = 2147483648", "daily_token_budget = 9007199254740992"]
        {
            let statement = sqlx::AssertSqlSafe(format!("UPDATE workspace_limits SET {bad}"));
            let mut tx = fresh.store.begin().await.unwrap();
            assert!(sqlx::query(statement).execute(&mut *tx).await.is_err(), "{bad}");
        }
    }
}
