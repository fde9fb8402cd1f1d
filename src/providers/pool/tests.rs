//! The pool against a scripted provider, a clock that stands until it is moved, and a real database.

mod admin;
mod candidates;
mod failover;
mod limits;
mod replicas;
mod settling;
mod shared;
mod trouble;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;

use async_trait::async_trait;
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, json};
use tokio::sync::Semaphore;

use super::*;
use crate::clock::{Clock as _, ManualClock};
use crate::config::SingleModel;
use crate::ledger::{StepUsage, WindowKind, WindowRow, window_row};
use crate::model::{Timestamp, Usage};
use crate::providers::{
    CandidateId, Event, Limits, Piece, QuotaRow, Sent, StatedLimits, Target, UNTIL_CHANGED,
};
use crate::store::testing::{Fresh, fresh};

/// How the scripted provider behaves for a key.
#[derive(Clone)]
enum Script {
    Answer(u64, u64),
    /// Pieces, and then an end.
    Stream,
    /// One piece, and then a cut.
    Cut,
    Fail(Failure),
    /// Takes no `max_tokens`, as models that reason do.
    Reasons,
    Panic,
    /// Answers when a permit is there.
    Wait(Arc<Semaphore>),
    /// Answers after a few turns of the other tasks, with at most so many tokens.
    Busy(u64),
}

struct Arrival {
    key: String,
    at: Timestamp,
    tokens: u64,
}

struct Provider {
    clock: Arc<ManualClock>,
    scripts: Mutex<HashMap<String, Script>>,
    arrivals: Mutex<Vec<Arrival>>,
}

fn step(input_tokens: u64, output_tokens: u64) -> StepUsage {
    StepUsage::reported(Usage { input_tokens, output_tokens })
}

#[async_trait]
impl Upstream for Provider {
    async fn send(&self, target: &Target, _: &str, request: &ModelRequest) -> Result<Sent, Failure> {
        let key = match target {
            Target::Provider { key, .. } => key.to_string(),
            Target::Demo => "demo".into(),
        };
        let script = self.scripts.lock().get(&key).cloned().unwrap_or(Script::Answer(20, 10));
        let tokens = if let Script::Busy(most) = script { rand::random_range(0..=most) } else { 0 };
        self.arrivals.lock().push(Arrival { key, at: self.clock.now(), tokens });
        let whole = |step| Ok(SentBody::Whole { completion: json!({}), text: "{}".into(), step });
        let stream = |events: Vec<Event>| {
            Ok(SentBody::Stream {
                events: Box::pin(futures::stream::iter(events)),
                so_far: Box::new(|| StepUsage::estimated(Usage { input_tokens: 7, output_tokens: 1 })),
            })
        };
        let body = match script {
            Script::Answer(input, output) => whole(step(input, output)),
            Script::Stream => stream(vec![
                Event::Piece(Piece::default()),
                Event::Piece(Piece::default()),
                Event::End(step(20, 10)),
            ]),
            Script::Cut => stream(vec![
                Event::Piece(Piece::default()),
                Event::Cut {
                    error: "cut".into(),
                    step: StepUsage::estimated(Usage { input_tokens: 5, output_tokens: 1 }),
                },
            ]),
            Script::Fail(failure) => Err(failure),
            Script::Reasons if request.member("max_completion_tokens").is_some() => whole(step(20, 10)),
            Script::Reasons => Err(Failure::Status {
                status: 400,
                retry_after_ms: None,
                reset_ms: None,
                message: Some("Unsupported 'max_tokens'. Use 'max_completion_tokens' instead.".into()),
                code: None,
                param: None,
            }),
            Script::Panic => panic!("the provider's answer made the client panic"),
            Script::Wait(permits) => {
                permits.acquire().await.unwrap().forget();
                whole(step(20, 10))
            }
            Script::Busy(_) => {
                for _ in 0..rand::random_range(0..6) {
                    tokio::task::yield_now().await;
                }
                whole(step(tokens, 0))
            }
        }?;
        Ok(Sent { stated: StatedLimits { requests: Some(99), tokens: None }, request_id: None, body })
    }

    fn estimate(&self, request: &ModelRequest, typical_output: u64) -> u64 {
        request.member("max_tokens").and_then(serde_json::Value::as_u64).unwrap_or(typical_output)
    }
}

#[derive(Default)]
struct Rows(Mutex<Vec<WindowRow>>);

impl UsageSink for Rows {
    fn record(&self, rows: Vec<WindowRow>) {
        self.0.lock().extend(rows);
    }
}

/// A model's line: platform, key labels, model, alias, priority, limits.
struct Line(&'static str, &'static [&'static str], &'static str, &'static str, i64, Limits);

const NONE: Limits = Limits { rpm: None, rpd: None, tpm: None, tpd: None };

struct Site {
    folder: tempfile::TempDir,
    store: Store,
    clock: Arc<ManualClock>,
    provider: Arc<Provider>,
    rows: Arc<Rows>,
    config: PoolConfig,
    pool: Pool,
    admission: Admission,
}

fn secret() -> SecretKey {
    SecretKey::from_base64("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=").unwrap()
}

/// Keys are `sk-LABEL`, their ids `PLATFORM-LABEL`.
async fn apply(store: &Store, lines: &[Line]) {
    let mut tx = store.begin().await.unwrap();
    for table in ["platform_models", "platform_keys", "platforms"] {
        sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&mut *tx).await.unwrap();
    }
    for (position, Line(platform, keys, model, alias, priority, limits)) in (0_i64..).zip(lines) {
        sqlx::query(
            "INSERT INTO platforms (id, base_url, position) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING",
        )
        .bind(*platform)
        .bind("https://provider.example/v1")
        .bind(position)
        .execute(&mut *tx)
        .await
        .unwrap();
        for (position, label) in (0_i64..).zip(*keys) {
            let id = format!("{platform}-{}", label.split('~').next().unwrap());
            sqlx::query(
                "INSERT INTO platform_keys (id, platform_id, label, sealed, position) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (id) DO NOTHING",
            )
            .bind(&id)
            .bind(*platform)
            .bind(*label)
            .bind(secret().seal(&id, &format!("sk-{label}")))
            .bind(position)
            .execute(&mut *tx)
            .await
            .unwrap();
        }
        let number = |limit: Option<u64>| limit.map(crate::store::to_i64);
        sqlx::query(
            "INSERT INTO platform_models (platform_id, model_id, alias, rpm, rpd, tpm, tpd, priority, position)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(*platform)
        .bind(*model)
        .bind(*alias)
        .bind(number(limits.rpm))
        .bind(number(limits.rpd))
        .bind(number(limits.tpm))
        .bind(number(limits.tpd))
        .bind(*priority)
        .bind(position)
        .execute(&mut *tx)
        .await
        .unwrap();
    }
    sqlx::query("UPDATE pool_version SET version = version + 1").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

impl Site {
    async fn new(lines: &[Line]) -> Self {
        Self::with(PoolConfig::default(), lines).await
    }

    async fn with(config: PoolConfig, lines: &[Line]) -> Self {
        let Fresh { store, folder } = fresh().await;
        apply(&store, lines).await;
        let clock = ManualClock::new(Timestamp::parse_rfc3339("2026-09-20T10:00:00.123Z").unwrap());
        let provider = Arc::new(Provider {
            clock: clock.clone(),
            scripts: Mutex::default(),
            arrivals: Mutex::default(),
        });
        let rows = Arc::new(Rows::default());
        let pool = open(&store, &clock, &provider, &rows, &config).await.unwrap();
        let admission = Admission::for_tests();
        Self { folder, store, clock, provider, rows, config, pool, admission }
    }

    /// What the ledger does at the end of a request, and then a new process.
    async fn restart(&mut self) {
        let mut rows = std::mem::take(&mut *self.rows.0.lock());
        rows.extend(self.admission.meter().take_window_row());
        let mut tx = self.store.begin().await.unwrap();
        window_row::insert(&mut tx, &crate::replicas::new_id(), 1, &rows).await.unwrap();
        tx.commit().await.unwrap();
        self.pool = open(&self.store, &self.clock, &self.provider, &self.rows, &self.config).await.unwrap();
    }

    fn script(&self, key: &str, script: Script) {
        self.provider.scripts.lock().insert(key.into(), script);
    }

    async fn ask(&self, model: &str) -> Result<Reply, CallError> {
        self.pool.call(&self.admission, model, request(20)).await
    }

    fn keys(&self) -> Vec<String> {
        self.provider.arrivals.lock().iter().map(|arrival| arrival.key.clone()).collect()
    }

    fn row(&self, model: &str) -> ProviderRow {
        self.pool.status().into_iter().find(|row| row.model == model).unwrap()
    }
}

async fn open(
    store: &Store,
    clock: &Arc<ManualClock>,
    provider: &Arc<Provider>,
    rows: &Arc<Rows>,
    config: &PoolConfig,
) -> Result<Pool, String> {
    Pool::open(Wiring {
        store: store.clone(),
        clock: clock.clone(),
        secret: secret(),
        config: config.clone(),
        upstream: provider.clone(),
        sink: rows.clone(),
        shared: None,
        replica: "this".into(),
    })
    .await
}

fn request(max_tokens: u64) -> ModelRequest {
    let mut body = Map::new();
    body.insert("max_tokens".into(), max_tokens.into());
    ModelRequest::new(body, false)
}

fn status(status: u16, retry_after_ms: Option<u64>) -> Script {
    Script::Fail(Failure::Status {
        status,
        retry_after_ms,
        reset_ms: None,
        message: None,
        code: None,
        param: None,
    })
}

fn rpm(n: u64) -> Limits {
    Limits { rpm: Some(n), ..NONE }
}
