//! Sessions in the table `sessions`: the id stored hashed, the user in a column of its own, so that
//! a user's sessions can be ended together.
//!
//! How long a session lasts is decided here, by the [`Clock`](crate::clock::Clock) and in the row;
//! the cookie merely lasts no shorter.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::http::{HeaderValue, Response, header};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};
use tower_sessions::cookie::SameSite;
use tower_sessions::session::{Id, Record};
use tower_sessions::session_store::{Error, Result};
use tower_sessions::{Expiry, SessionManagerLayer, SessionStore};

use crate::audit::hex;
use crate::clock::SharedClock;
use crate::model::{Timestamp, UserId};
use crate::store::{Store, Tx};

use super::Identity;
use super::seen::Seen;

const DAY_MS: i64 = 24 * 60 * 60_000;
/// A session that isn't used ends after so long …
pub(super) const INACTIVITY_MS: i64 = 14 * DAY_MS;
/// … and one that is used, after so long.
pub(super) const LIFETIME_MS: i64 = 90 * DAY_MS;
/// Sessions a user has at most; the oldest end first.
const SESSIONS_A_USER: i64 = 1_000;
const STEP: i64 = 200;

/// The key in a session's data under which its user stands.
pub(super) const USER: &str = "user";

#[derive(Clone)]
pub struct Sessions {
    store: Store,
    clock: SharedClock,
    seen: Arc<Seen>,
}

impl Identity {
    /// Gives all routes of `router` the session of their request.
    pub fn with_sessions<S: Clone + Send + Sync + 'static>(&self, router: Router<S>) -> Router<S> {
        let sessions =
            Sessions { store: self.store.clone(), clock: self.clock.clone(), seen: self.seen.clone() };
        let layer = SessionManagerLayer::new(sessions)
            .with_name(if self.production { "__Host-tollkeeper" } else { "tollkeeper" })
            .with_secure(self.production)
            .with_http_only(true)
            .with_same_site(SameSite::Lax)
            .with_path("/")
            .with_expiry(Expiry::OnInactivity(Duration::milliseconds(LIFETIME_MS)));
        let router = router.layer(layer);
        if self.production { router.layer(axum::middleware::map_response(secured)) } else { router }
    }
}

/// The layer takes a cookie back without saying Secure, and a browser ignores that of a `__Host-` one.
async fn secured<B>(mut response: Response<B>) -> Response<B> {
    if let header::Entry::Occupied(mut cookies) = response.headers_mut().entry(header::SET_COOKIE) {
        for cookie in cookies.iter_mut() {
            let text = cookie.to_str().unwrap_or("");
            if text.starts_with("__Host-")
                && !text.contains("; Secure")
                && let Ok(value) = HeaderValue::from_str(&format!("{text}; Secure"))
            {
                *cookie = value;
            }
        }
    }
    response
}

/// Ends all sessions of a user, as after a change of the password.
pub async fn end_sessions_of(tx: &mut Tx, user: &UserId) -> std::result::Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM sessions WHERE user_id = $1")
        .bind(user.as_str().to_owned())
        .execute(&mut **tx)
        .await
        .map(drop)
}

/// Deletes some of those that have expired; returns whether there may be more.
pub(super) async fn delete_expired(tx: &mut Tx, now: Timestamp) -> std::result::Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "DELETE FROM sessions WHERE id_hash IN
           (SELECT id_hash FROM sessions WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2)",
    )
    .bind(now.ms())
    .bind(STEP)
    .execute(&mut **tx)
    .await?;
    Ok(i64::try_from(done.rows_affected()).is_ok_and(|rows| rows == STEP))
}

#[async_trait]
impl SessionStore for Sessions {
    async fn create(&self, record: &mut Record) -> Result<()> {
        let (data, user, now) = (data(record)?, user(record), self.clock.now());
        let mut tx = self.store.begin().await.map_err(failed)?;
        loop {
            let done = sqlx::query(
                "INSERT INTO sessions (id_hash, user_id, data, created_at_ms, last_seen_ms, expires_at_ms)
                 VALUES ($1, $2, $3, $4, $4, $5) ON CONFLICT (id_hash) DO NOTHING",
            )
            .bind(id_hash(&record.id))
            .bind(user.clone())
            .bind(data.clone())
            .bind(now.ms())
            .bind(now.plus_ms(INACTIVITY_MS).ms())
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
            if done.rows_affected() == 1 {
                break;
            }
            record.id = Id::default();
        }
        sqlx::query(
            "DELETE FROM sessions WHERE id_hash IN
               (SELECT id_hash FROM sessions WHERE user_id = $1 ORDER BY created_at_ms DESC LIMIT $2 OFFSET $3)",
        )
        .bind(user)
        .bind(STEP)
        .bind(SESSIONS_A_USER)
        .execute(&mut *tx)
        .await
        .map_err(failed)?;
        tx.commit().await.map_err(failed)
    }

    /// Of a session that was ended meanwhile nothing is saved: it must not come back.
    async fn save(&self, record: &Record) -> Result<()> {
        let mut tx = self.store.begin().await.map_err(failed)?;
        sqlx::query("UPDATE sessions SET user_id = $2, data = $3 WHERE id_hash = $1")
            .bind(id_hash(&record.id))
            .bind(user(record))
            .bind(data(record)?)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let (id_hash, now) = (id_hash(id), self.clock.now());
        let row: Option<(String, i64, i64)> = sqlx::query_as(
            "SELECT data, last_seen_ms, expires_at_ms FROM sessions WHERE id_hash = $1 AND expires_at_ms > $2",
        )
        .bind(id_hash.clone())
        .bind(now.ms())
        .fetch_optional(self.store.read())
        .await
        .map_err(failed)?;
        let Some((data, last_seen_ms, expires_at_ms)) = row else {
            return Ok(None);
        };
        let Ok(data) = serde_json::from_str(&data) else {
            tracing::warn!("the data of a session can't be read; it counts as ended");
            return Ok(None);
        };
        self.seen.session(&id_hash, Timestamp(last_seen_ms), now);
        let expiry_date = OffsetDateTime::from_unix_timestamp_nanos(i128::from(expires_at_ms) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        Ok(Some(Record { id: *id, data, expiry_date }))
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        let mut tx = self.store.begin().await.map_err(failed)?;
        sqlx::query("DELETE FROM sessions WHERE id_hash = $1")
            .bind(id_hash(id))
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

fn id_hash(id: &Id) -> String {
    hex(&Sha256::digest(id.to_string()))
}

fn data(record: &Record) -> Result<String> {
    serde_json::to_string(&record.data).map_err(|error| Error::Encode(error.to_string()))
}

fn user(record: &Record) -> Option<String> {
    record.data.get(USER).and_then(|value| value.as_str()).map(str::to_owned)
}

/// The cause goes to the log.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: sqlx::Error) -> Error {
    Error::Backend(crate::store::failed(&error).to_string())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Site, count};
    use super::*;

    fn sessions(site: &Site) -> Sessions {
        Sessions { store: site.store.clone(), clock: site.clock.clone(), seen: site.identity.seen.clone() }
    }

    fn record(user: &UserId) -> Record {
        let data = [(USER.to_owned(), user.as_str().into())].into_iter().collect();
        Record { id: Id::default(), data, expiry_date: OffsetDateTime::UNIX_EPOCH }
    }

    #[tokio::test]
    async fn sessions_are_kept_changed_and_deleted_and_a_deleted_one_stays_so() {
        let site = Site::open().await;
        let (sessions, ada) = (sessions(&site), site.user("ada@example.com", false, &[]).await);
        let mut record = record(&ada);
        sessions.create(&mut record).await.unwrap();
        assert_eq!(sessions.load(&record.id).await.unwrap().unwrap().data, record.data);
        record.data.insert("workspace".into(), "acme".into());
        sessions.save(&record).await.unwrap();
        assert_eq!(sessions.load(&record.id).await.unwrap().unwrap().data, record.data);
        let (stored, user): (String, Option<String>) =
            sqlx::query_as("SELECT id_hash, user_id FROM sessions")
                .fetch_one(site.store.read())
                .await
                .unwrap();
        assert_eq!((stored.len(), user.as_deref()), (64, Some(ada.as_str())));
        assert!(!stored.contains(&record.id.to_string()));
        sessions.delete(&record.id).await.unwrap();
        sessions.save(&record).await.unwrap();
        assert!(sessions.load(&record.id).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_new_session_never_takes_the_place_of_another() {
        let site = Site::open().await;
        let sessions = sessions(&site);
        let mut one = record(&site.user("ada@example.com", false, &[]).await);
        let mut other = record(&site.user("eve@example.com", false, &[]).await);
        sessions.create(&mut one).await.unwrap();
        other.id = one.id;
        sessions.create(&mut other).await.unwrap();
        assert_ne!(other.id, one.id);
        assert_eq!(sessions.load(&one.id).await.unwrap().unwrap().data, one.data);
    }

    #[tokio::test]
    async fn a_session_ends_unused_after_two_weeks_and_used_after_ninety_days() {
        let site = Site::open().await;
        let (sessions, ada) = (sessions(&site), site.user("ada@example.com", false, &[]).await);
        let (mut idle, mut used) = (record(&ada), record(&ada));
        sessions.create(&mut idle).await.unwrap();
        sessions.create(&mut used).await.unwrap();
        for _ in 0..8 {
            site.clock.advance_ms(10 * DAY_MS);
            assert!(sessions.load(&used.id).await.unwrap().is_some());
            site.identity.tidy().await.unwrap();
        }
        assert!(sessions.load(&idle.id).await.unwrap().is_none());
        assert_eq!(count(&site.store, "SELECT COUNT(*) FROM sessions").await, 1, "the idle one is deleted");
        site.clock.advance_ms(10 * DAY_MS);
        assert!(sessions.load(&used.id).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_use_is_written_once_a_minute_and_not_by_the_request() {
        let site = Site::open().await;
        let sessions = sessions(&site);
        let mut record = record(&site.user("ada@example.com", false, &[]).await);
        sessions.create(&mut record).await.unwrap();
        let last_seen = async || count(&site.store, "SELECT last_seen_ms FROM sessions").await;
        let created = last_seen().await;
        site.clock.advance_ms(59_999);
        sessions.load(&record.id).await.unwrap();
        site.identity.tidy().await.unwrap();
        assert_eq!(last_seen().await, created);
        site.clock.advance_ms(1);
        sessions.load(&record.id).await.unwrap();
        assert_eq!(last_seen().await, created);
        site.identity.tidy().await.unwrap();
        assert_eq!(last_seen().await, created + 60_000);
    }

    #[tokio::test]
    async fn a_users_sessions_are_bounded_and_can_be_ended_together() {
        let site = Site::open().await;
        let (sessions, ada) = (sessions(&site), site.user("ada@example.com", false, &[]).await);
        let mut first = record(&ada);
        sessions.create(&mut first).await.unwrap();
        site.clock.advance_ms(1);
        site.run(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO sessions SELECT 'x' || i, s.user_id, s.data, s.created_at_ms + 1, 0, s.expires_at_ms
             FROM n, sessions s",
        )
        .await;
        sessions.create(&mut record(&ada)).await.unwrap();
        assert_eq!(count(&site.store, "SELECT COUNT(*) FROM sessions").await, SESSIONS_A_USER);
        assert!(sessions.load(&first.id).await.unwrap().is_none());
        let mut tx = site.store.begin().await.unwrap();
        end_sessions_of(&mut tx, &ada).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(count(&site.store, "SELECT COUNT(*) FROM sessions").await, 0);
    }
}
