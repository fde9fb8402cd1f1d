//! A database with users and workspaces, for tests.

use std::sync::{Arc, OnceLock};

use crate::clock::{Clock, ManualClock};
use crate::model::{Role, Timestamp, UserId};
use crate::store::Store;
use crate::store::testing::{Fresh, fresh};

use super::{Identity, Passwords, new_user_id};

pub(crate) const PASSWORD: &str = "correct-horse-battery-staple";

pub(crate) struct Site {
    pub(crate) identity: Identity,
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    _folder: tempfile::TempDir,
}

impl Site {
    pub(crate) async fn open() -> Self {
        Self::open_in(false).await
    }

    pub(crate) async fn open_in(production: bool) -> Self {
        let Fresh { store, folder } = fresh().await;
        let clock = ManualClock::new(Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap());
        let identity = Identity::new(store.clone(), clock.clone(), production);
        Site { identity, store, clock, _folder: folder }
    }

    pub(crate) fn clock_now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) async fn run(&self, sql: &'static str) {
        let mut tx = self.store.begin().await.unwrap();
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn workspace(&self, id: &str) {
        let mut tx = self.store.begin().await.unwrap();
        sqlx::query("INSERT INTO workspaces (id, name, created_at_ms) VALUES ($1, $1, 0)")
            .bind(id.to_owned())
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    /// A user with the password [`PASSWORD`].
    pub(crate) async fn user(&self, email: &str, admin: bool, memberships: &[(&str, Role)]) -> UserId {
        let id = new_user_id();
        let hash = password_hash().await;
        let mut tx = self.store.begin().await.unwrap();
        sqlx::query(
            "INSERT INTO users (id, email, password_hash, admin, created_at_ms) VALUES ($1, $2, $3, $4, 0)",
        )
        .bind(id.as_str().to_owned())
        .bind(email.to_owned())
        .bind(hash)
        .bind(i64::from(admin))
        .execute(&mut *tx)
        .await
        .unwrap();
        for (workspace, role) in memberships {
            sqlx::query("INSERT INTO memberships (user_id, workspace_id, role) VALUES ($1, $2, $3)")
                .bind(id.as_str().to_owned())
                .bind((*workspace).to_owned())
                .bind(role.as_str())
                .execute(&mut *tx)
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
        id
    }
}

pub(crate) async fn count(store: &Store, sql: &'static str) -> i64 {
    sqlx::query_as::<_, (i64,)>(sql).fetch_one(store.read()).await.unwrap().0
}

/// Hashed once a process.
async fn password_hash() -> String {
    static HASH: OnceLock<String> = OnceLock::new();
    if let Some(hash) = HASH.get() {
        return hash.clone();
    }
    let hash = Passwords::default().hash(PASSWORD.into()).await.unwrap();
    HASH.get_or_init(|| hash).clone()
}
