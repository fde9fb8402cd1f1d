//! Noticing what was written, by whichever program: one look for the whole server, however many pages wait.
//!
//! SQLite's `data_version` tells it for the price of reading a number. PostgreSQL's triggers notify, and
//! whether notifications arrive is not taken on trust (a connection pooler may swallow them): every
//! replica's sign of life, each other second, is one. Where they stay out, this says "look" every second.

use std::sync::Arc;
use std::time::Duration;

use sqlx::AnyPool;
use sqlx::postgres::PgListener;

use super::Store;

/// What the triggers of migration 0002 notify; the payload is the table's name.
const CHANNEL: &str = "tollkeeper";
/// Its changes show on no page.
const SIGN_OF_LIFE: &str = "replicas";
/// How often SQLite is asked.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How often to look where nobody tells.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longer than a few signs of life are apart.
const SILENCE: Duration = Duration::from_secs(5);
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Where an engine tells it.
#[derive(Clone)]
pub(super) enum Source {
    /// A connection that writes nothing and is used for nothing else: the number is of its point of view.
    DataVersion(AnyPool),
    /// The database's address.
    Notifications(Arc<str>),
}

/// Hears of changes one after the other.
pub struct Changes {
    source: Source,
    version: i64,
    listener: Option<PgListener>,
    /// Whether something arrived through the listener.
    heard: bool,
}

impl Store {
    pub fn changes(&self) -> Changes {
        Changes { source: self.changes.clone(), version: 0, listener: None, heard: false }
    }
}

impl Changes {
    /// Returns when something may have been written since the last call.
    pub async fn next(&mut self) {
        match self.source.clone() {
            Source::DataVersion(pool) => self.next_version(&pool).await,
            Source::Notifications(address) => self.next_notification(&address).await,
        }
    }

    async fn next_version(&mut self, pool: &AnyPool) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            let version = sqlx::query_scalar("PRAGMA data_version").fetch_one(pool).await;
            // One that can't be read says nothing: what pages show can't be read either.
            if let Ok(version) = version
                && version != self.version
            {
                self.version = version;
                return;
            }
        }
    }

    async fn next_notification(&mut self, address: &str) {
        if self.listener.is_none() {
            self.listener =
                tokio::time::timeout(CONNECT_WITHIN, listen(address)).await.ok().and_then(Result::ok);
            self.heard = false;
            if self.listener.is_none() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            return;
        }
        while let Some(listener) = &mut self.listener {
            let patience = if self.heard { SILENCE } else { LOOK_EVERY };
            match tokio::time::timeout(patience, listener.try_recv()).await {
                Ok(Ok(Some(notification))) => {
                    self.heard = true;
                    if notification.payload() != SIGN_OF_LIFE {
                        return;
                    }
                }
                Err(_) if !self.heard => return,
                // Silent for too long, or broken.
                _ => self.listener = None,
            }
        }
    }
}

async fn listen(address: &str) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect(address).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::super::testing::fresh;
    use super::*;

    /// Whether a change is heard within the time that pages allow.
    async fn hears(changes: &mut Changes) -> bool {
        tokio::time::timeout(Duration::from_millis(1_500), changes.next()).await.is_ok()
    }

    #[tokio::test]
    async fn what_any_program_writes_is_heard() {
        let fresh = fresh().await;
        let mut changes = fresh.store.changes();
        changes.next().await;
        for statement in [
            "INSERT INTO workspaces (id, name, created_at_ms) VALUES ('acme', 'Acme', 0)",
            "INSERT INTO workspace_limits (workspace_id, rate_per_minute) VALUES ('acme', 5)",
            "INSERT INTO llm_usage (workspace_id, day, route, model) VALUES ('acme', '2026-01-01', 'chat', 'm')",
            "INSERT INTO llm_refusals (workspace_id, day, kind) VALUES ('acme', '2026-01-01', 'rate')",
            "DELETE FROM workspace_limits",
        ] {
            fresh.run(statement).await.unwrap();
            assert!(hears(&mut changes).await, "{statement}");
        }
    }

    #[tokio::test]
    async fn where_nothing_is_written_nothing_is_heard_once_notifications_are_known_to_arrive() {
        let fresh = fresh().await;
        let mut changes = fresh.store.changes();
        changes.next().await;
        fresh
            .run("INSERT INTO replicas (id, started_at_ms, seen_at_ms, beat) VALUES ('a', 0, 0, 1)")
            .await
            .unwrap();
        fresh
            .run("INSERT INTO workspaces (id, name, created_at_ms) VALUES ('acme', 'Acme', 0)")
            .await
            .unwrap();
        changes.next().await;
        assert!(!hears(&mut changes).await);
    }
}
