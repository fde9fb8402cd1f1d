//! SQLite: WAL, one writing connection, a pool of reading ones.

use std::path::Path;

use sqlx::migrate::Migrator;
use sqlx::{AnyPool, Executor};

use super::{Engine, Store, pool};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// A deferred transaction that turns from reading to writing fails at once when another writes;
/// this one waits its turn.
pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";

const READERS: u32 = 4;

pub(super) async fn open(path: &Path) -> Result<Store, String> {
    let shown = path.display();
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|e| format!("the folder {} can't be created: {e}", folder.display()))?;
    }
    let write = connect(path, "rwc", 1, &["PRAGMA journal_mode = WAL"])
        .await
        .map_err(|e| format!("the database {shown} can't be opened: {e}"))?;
    MIGRATIONS
        .run(&write)
        .await
        .map_err(|e| format!("the database {shown} can't be brought up to date: {e}"))?;
    let read = connect(path, "ro", READERS, &["PRAGMA query_only = ON"])
        .await
        .map_err(|e| format!("the database {shown} can't be opened for reading: {e}"))?;
    Ok(Store { engine: Engine::Sqlite, read, write })
}

/// `synchronous = FULL`: an answer that has arrived is in the ledger even after a power cut.
async fn connect(
    path: &Path,
    mode: &str,
    size: u32,
    more: &'static [&'static str],
) -> Result<AnyPool, sqlx::Error> {
    let url = format!("sqlite://{}?mode={mode}", percent_encoded(path));
    pool(size)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                for pragma in
                    ["PRAGMA busy_timeout = 5000", "PRAGMA foreign_keys = ON", "PRAGMA synchronous = FULL"]
                {
                    connection.execute(pragma).await?;
                }
                for pragma in more {
                    connection.execute(*pragma).await?;
                }
                Ok(())
            })
        })
        .connect(&url)
        .await
}

/// The path as a part of a URL, so that `?`, `%` and `#` in a folder's name stay what they are.
fn percent_encoded(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            text.push(byte as char);
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DatabaseUrl;

    #[tokio::test]
    async fn opens_creates_migrates_and_keeps_readers_from_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b%c?d/x.db");
        let store = Store::open(&DatabaseUrl::Sqlite(path.clone())).await.unwrap();
        store.ping().await.unwrap();
        let mut tx = store.begin().await.unwrap();
        sqlx::query("INSERT INTO workspace_limits (workspace_id, rate_per_minute) VALUES ($1, $2)")
            .bind("acme")
            .bind(Some(5_i64))
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let (rate, budget, at): (Option<i64>, Option<i64>, String) = sqlx::query_as(
            "SELECT rate_per_minute, daily_token_budget, updated_at FROM workspace_limits WHERE workspace_id = $1",
        )
        .bind("acme")
        .fetch_one(store.read())
        .await
        .unwrap();
        assert_eq!((rate, budget), (Some(5), None));
        assert!(crate::model::Timestamp::parse_rfc3339(&at).is_some(), "{at}");
        assert!(sqlx::query("DELETE FROM workspace_limits").execute(store.read()).await.is_err());
        assert!(path.exists());
        store.close().await;
    }
}
