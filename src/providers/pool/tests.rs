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
use crate::ledger::{StepUsage, WindowKind, WindowRow, window_row};
use crate::model::{Timestamp, Usage};
use crate::providers::{Event, Piece, Sent, SingleModel, StatedLimits, Target};
use crate::store::DatabaseUrl;

/// How the scripted provider behaves for a key.
#[derive(Clone)]
enum Script {
    Answer(u64, u64),
    /// Pieces, and then an end.
    Stream,
    /// One piece, and then a cut.
    Cut,
    Fail(Failure),
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
    StepUsage::reported(Usage {
        input_tokens,
        output_tokens,
    })
}

#[async_trait]
impl Upstream for Provider {
    async fn send(&self, target: &Target, _: &str, _: &ChatRequest) -> Result<Sent, Failure> {
        let key = match target {
            Target::Provider { key, .. } => key.to_string(),
            Target::Demo => "demo".into(),
        };
        let script = self
            .scripts
            .lock()
            .get(&key)
            .cloned()
            .unwrap_or(Script::Answer(20, 10));
        let tokens = if let Script::Busy(most) = script {
            rand::random_range(0..=most)
        } else {
            0
        };
        self.arrivals.lock().push(Arrival {
            key,
            at: self.clock.now(),
            tokens,
        });
        let whole = |step| {
            Ok(SentBody::Whole {
                completion: json!({}),
                step,
            })
        };
        let stream = |events: Vec<Event>| {
            Ok(SentBody::Stream {
                events: Box::pin(futures::stream::iter(events)),
                so_far: Box::new(|| {
                    StepUsage::estimated(Usage {
                        input_tokens: 7,
                        output_tokens: 1,
                    })
                }),
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
                    step: StepUsage::estimated(Usage {
                        input_tokens: 5,
                        output_tokens: 1,
                    }),
                },
            ]),
            Script::Fail(failure) => Err(failure),
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
        Ok(Sent {
            stated: StatedLimits {
                requests: Some(99),
                tokens: None,
            },
            body,
        })
    }

    fn estimate(&self, request: &ChatRequest, typical_output: u64) -> u64 {
        request
            .body
            .get("max_tokens")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(typical_output)
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
struct Line(
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
    i64,
    Limits,
);

use crate::providers::Limits;

const NONE: Limits = Limits {
    rpm: None,
    rpd: None,
    tpm: None,
    tpd: None,
};

struct Site {
    _folder: tempfile::TempDir,
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
        sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM {table}")))
            .execute(&mut *tx)
            .await
            .unwrap();
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
    sqlx::query("UPDATE pool_version SET version = version + 1")
        .execute(&mut *tx)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

impl Site {
    async fn new(lines: &[Line]) -> Self {
        Self::with(PoolConfig::default(), lines).await
    }

    async fn with(config: PoolConfig, lines: &[Line]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&DatabaseUrl::Sqlite(folder.path().join("x.db")))
            .await
            .unwrap();
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
        Self {
            _folder: folder,
            store,
            clock,
            provider,
            rows,
            config,
            pool,
            admission,
        }
    }

    /// What the ledger does at the end of a request, and then a new process.
    async fn restart(&mut self) {
        let mut rows = std::mem::take(&mut *self.rows.0.lock());
        rows.extend(self.admission.meter().take_window_rows());
        let mut tx = self.store.begin().await.unwrap();
        window_row::insert(&mut tx, &rows).await.unwrap();
        tx.commit().await.unwrap();
        self.pool = open(&self.store, &self.clock, &self.provider, &self.rows, &self.config)
            .await
            .unwrap();
    }

    fn script(&self, key: &str, script: Script) {
        self.provider.scripts.lock().insert(key.into(), script);
    }

    async fn ask(&self, model: &str) -> Result<Reply, CallError> {
        self.pool.call(&self.admission, model, request(20)).await
    }

    fn keys(&self) -> Vec<String> {
        self.provider
            .arrivals
            .lock()
            .iter()
            .map(|arrival| arrival.key.clone())
            .collect()
    }

    fn row(&self, model: &str) -> ProviderRow {
        self.pool
            .status()
            .into_iter()
            .find(|row| row.model == model)
            .unwrap()
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
    })
    .await
}

fn request(max_tokens: u64) -> ChatRequest {
    let mut body = Map::new();
    body.insert("max_tokens".into(), max_tokens.into());
    ChatRequest { body, stream: false }
}

fn status(status: u16, retry_after_ms: Option<u64>) -> Script {
    Script::Fail(Failure::Status {
        status,
        retry_after_ms,
        reset_ms: None,
        message: None,
        code: None,
    })
}

fn rpm(n: u64) -> Limits {
    Limits { rpm: Some(n), ..NONE }
}

#[tokio::test]
async fn priority_then_headroom_then_order() {
    let site = Site::new(&[
        Line("beta", &["b1"], "other-1", "default", 2, NONE),
        Line("alpha", &["a1", "a2"], "large-1", "default", 1, rpm(2)),
    ])
    .await;
    for _ in 0..6 {
        site.ask("default").await.unwrap();
    }
    assert_eq!(
        site.keys(),
        ["sk-a1", "sk-a2", "sk-a1", "sk-a2", "sk-b1", "sk-b1"]
    );
    site.clock.advance_ms(60_000);
    let reply = site.ask("default").await.unwrap();
    assert_eq!(
        (reply.platform.as_str(), reply.model.as_str()),
        ("alpha", "large-1")
    );
}

#[tokio::test]
async fn tokens_are_held_by_estimate_and_settled_by_what_was_used() {
    let tokens = Limits {
        tpm: Some(1_000),
        ..NONE
    };
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, tokens)]).await;
    site.script("sk-a1", Script::Answer(900, 80));
    site.pool
        .call(&site.admission, "default", request(5_000))
        .await
        .expect("too large, but the window is empty");
    assert_eq!(
        site.row("m").tpm,
        crate::providers::QuotaRow {
            used: 980,
            limit: Some(1_000)
        }
    );
    site.ask("default").await.expect("20 more fit exactly");
    let full = site.ask("default").await.err().unwrap();
    let CallError::NoRoom {
        message,
        retry_after_ms,
    } = full
    else {
        panic!("{full:?}")
    };
    assert!(
        message.contains("alpha/m has 1,960 of 1,000 tokens per minute"),
        "{message}"
    );
    assert_eq!(retry_after_ms, 60_000);
    site.clock.advance_ms(59_999);
    assert!(site.ask("default").await.is_err());
    site.clock.advance_ms(1);
    site.ask("default").await.unwrap();
}

#[tokio::test]
async fn the_cap_counts_all_models_of_a_key_until_midnight() {
    let config = PoolConfig {
        caps: HashMap::from([("ALPHA".into(), 3)]),
        ..PoolConfig::default()
    };
    let lines = [
        Line("alpha", &["a1"], "large", "default", 1, NONE),
        Line("alpha", &["a1"], "tiny", "small", 1, NONE),
    ];
    let site = Site::with(config, &lines).await;
    for model in ["default", "small", "alpha/tiny"] {
        site.ask(model).await.unwrap();
    }
    assert!(!site.pool.quotas().can_use_provider("alpha", "alpha-a1"));
    let CallError::NoRoom {
        message,
        retry_after_ms,
    } = site.ask("small").await.err().unwrap()
    else {
        panic!()
    };
    assert!(message.contains("3 of 3 requests of its key today"), "{message}");
    assert_eq!(
        site.clock.now().plus_ms(i64::try_from(retry_after_ms).unwrap()),
        site.clock.now().day().end()
    );
    assert_eq!(site.row("large").provider_day, site.row("tiny").provider_day);
    site.clock.set(site.clock.now().day().end());
    site.ask("small").await.unwrap();
}

#[tokio::test]
async fn a_429_moves_on_and_is_left_alone_for_as_long_as_it_says() {
    let lines = [
        Line("alpha", &["a1"], "m", "default", 1, NONE),
        Line("beta", &["b1"], "n", "default", 2, NONE),
    ];
    let site = Site::new(&lines).await;
    site.script("sk-a1", status(429, Some(3_000)));
    site.ask("default").await.unwrap();
    assert_eq!(
        site.row("m").cooldown_until,
        Some(site.clock.now().plus_ms(3_000))
    );
    assert_eq!(site.row("m").rpm.used, 0, "a 429 is no request");
    site.script("sk-a1", Script::Answer(1, 1));
    site.clock.advance_ms(2_999);
    site.ask("default").await.unwrap();
    site.clock.advance_ms(1);
    site.ask("default").await.unwrap();
    assert_eq!(site.keys(), ["sk-a1", "sk-b1", "sk-b1", "sk-a1"]);
}

#[tokio::test]
async fn all_told_to_wait_is_want_of_room_with_the_soonest_recovery() {
    let site = Site::new(&[Line("alpha", &["a1", "a2"], "m", "default", 1, NONE)]).await;
    site.script("sk-a1", status(429, Some(30_000)));
    site.script("sk-a2", status(429, Some(9_500)));
    for tries in [2, 2] {
        let error = site.ask("default").await.err().unwrap();
        assert!(
            matches!(
                error,
                CallError::NoRoom {
                    retry_after_ms: 9_500,
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(site.keys().len(), tries);
    }
}

#[tokio::test]
async fn what_no_provider_stated_does_not_bench_the_last_candidate() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    for script in [
        status(500, None),
        status(429, None),
        status(404, None),
        Script::Fail(Failure::Timeout),
    ] {
        site.script("sk-a1", script);
        let before = site.keys().len();
        assert!(matches!(
            site.ask("default").await,
            Err(CallError::AllFailed { .. })
        ));
        assert!(matches!(
            site.ask("default").await,
            Err(CallError::AllFailed { .. })
        ));
        assert_eq!(site.keys().len(), before + 2);
    }
    assert!(
        site.admission.meter().take().is_empty(),
        "a failed call used something"
    );
    site.script("sk-a1", Script::Answer(1, 1));
    site.ask("default").await.unwrap();
    assert_eq!(site.row("m").cooldown_until, None, "a success forgets");
}

#[tokio::test]
async fn a_5xx_leaves_the_candidate_alone_while_another_serves() {
    let lines = [
        Line("alpha", &["a1"], "m", "default", 1, NONE),
        Line("beta", &["b1"], "n", "default", 2, NONE),
    ];
    let site = Site::new(&lines).await;
    site.script("sk-a1", status(503, None));
    site.ask("default").await.unwrap();
    site.ask("default").await.unwrap();
    assert_eq!(site.keys(), ["sk-a1", "sk-b1", "sk-b1"]);
    assert_eq!(site.row("m").rpm.used, 1, "an answer of 503 counts as a request");
    site.clock.advance_ms(10_000);
    site.ask("default").await.unwrap();
    assert_eq!(
        site.row("m").cooldown_until,
        Some(site.clock.now().plus_ms(20_000)),
        "the ladder doubles"
    );
    site.script("sk-b1", Script::Fail(Failure::Connection));
    let CallError::AllFailed { message } = site.ask("default").await.err().unwrap() else {
        panic!()
    };
    assert!(message.contains("beta/n could not be reached"), "{message}");
}

#[tokio::test]
async fn a_400_is_the_callers() {
    let lines = [
        Line("alpha", &["a1"], "m", "default", 1, NONE),
        Line("beta", &["b1"], "n", "default", 2, NONE),
    ];
    let site = Site::new(&lines).await;
    let message = Some("temperature must be at most 2".to_owned());
    let failure = Failure::Status {
        status: 400,
        retry_after_ms: None,
        reset_ms: None,
        message,
        code: None,
    };
    site.script("sk-a1", Script::Fail(failure));
    let CallError::Rejected { message } = site.ask("default").await.err().unwrap() else {
        panic!()
    };
    assert!(message.contains("temperature must be at most 2"), "{message}");
    assert_eq!((site.keys().len(), site.row("m").cooldown_until), (1, None));
    assert!(site.admission.meter().take().is_empty());
}

#[tokio::test]
async fn a_rejected_key_rests_with_all_its_models_until_it_is_changed_or_cleared() {
    let lines = |label: &'static [&'static str]| {
        [
            Line("alpha", label, "m", "default", 1, rpm(9)),
            Line("alpha", label, "s", "small", 1, NONE),
            Line("beta", &["b1"], "n", "default", 2, NONE),
            Line("beta", &["b1"], "t", "small", 2, NONE),
        ]
    };
    let site = Site::new(&lines(&["a1"])).await;
    site.script("sk-a1", status(401, None));
    site.ask("default").await.unwrap();
    site.clock.advance_ms(30 * 86_400_000);
    site.ask("small").await.unwrap();
    assert_eq!(site.keys(), ["sk-a1", "sk-b1", "sk-b1"]);
    assert_eq!(
        site.row("s").cooldown_until,
        Some(crate::providers::UNTIL_CHANGED)
    );
    apply(&site.store, &lines(&["a1"])).await;
    site.pool.reload().await.unwrap();
    assert!(
        site.row("m").cooldown_until.is_some(),
        "sealed anew, but the same key"
    );
    apply(&site.store, &lines(&["a1~new"])).await;
    site.pool.reload().await.unwrap();
    assert_eq!(site.row("m").cooldown_until, None);
    site.script("sk-a1~new", status(401, None));
    site.ask("default").await.unwrap();
    assert!(site.pool.clear_cooldown("alpha", "alpha-a1"));
    assert_eq!(
        (site.row("m").cooldown_until, site.row("s").cooldown_until),
        (None, None)
    );
    assert!(!site.pool.clear_cooldown("alpha", "alpha-a1"));
}

#[tokio::test]
async fn a_stream_is_entered_once_however_it_ends() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    let begin = async || match site.ask("default").await.unwrap().answer {
        Answer::Stream(events) => events,
        Answer::Whole { .. } => panic!("not a stream"),
    };
    site.script("sk-a1", Script::Stream);
    let mut events = begin().await;
    assert_eq!((site.row("m").rpm.used, site.row("m").in_flight), (1, 1));
    assert!(site.admission.meter().take().is_empty());
    while let Some(event) = events.next().await {
        if matches!(event, Event::End(_)) {
            assert_eq!(
                site.admission.meter().total().total(),
                30,
                "entered before the end is seen"
            );
        }
    }
    drop(events);
    assert_eq!(site.admission.meter().take(), [("m".to_owned(), step(20, 10))]);
    assert_eq!(site.admission.meter().take_window_rows().len(), 2);

    site.script("sk-a1", Script::Cut);
    assert_eq!(begin().await.count().await, 2);
    assert_eq!(site.admission.meter().total().total(), 6);
    assert_eq!(site.keys().len(), 2, "a stream that has begun is not begun again");
    site.admission.meter().take();

    site.script("sk-a1", Script::Stream);
    let mut events = begin().await;
    events.next().await;
    drop(events);
    let [(_, dropped)] = site.admission.meter().take().try_into().unwrap();
    assert_eq!(
        dropped.estimated,
        Usage {
            input_tokens: 7,
            output_tokens: 1
        }
    );
    let row = site.row("m");
    assert_eq!((row.rpm.used, row.tpm.used, row.in_flight), (3, 30 + 6 + 8, 0));
}

#[tokio::test]
async fn leases_are_given_up_when_a_call_is_dropped_or_panics() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(1))]).await;
    let permits = Arc::new(Semaphore::new(0));
    site.script("sk-a1", Script::Wait(permits.clone()));
    {
        let mut call = std::pin::pin!(site.ask("default"));
        assert!(futures::poll!(&mut call).is_pending());
        assert_eq!(site.row("m").in_flight, 1);
        assert!(
            !site
                .pool
                .quotas()
                .can_make_request(&CandidateId::new("alpha", "m", "alpha-a1"))
        );
        let error = site.ask("default").await.err().unwrap();
        assert!(
            matches!(
                error,
                CallError::NoRoom {
                    retry_after_ms: 1_000,
                    ..
                }
            ),
            "{error:?}"
        );
    }
    assert_eq!(site.row("m").in_flight, 0);
    site.script("sk-a1", Script::Panic);
    assert!(
        AssertUnwindSafe(site.ask("default"))
            .catch_unwind()
            .await
            .is_err()
    );
    let row = site.row("m");
    assert_eq!((row.in_flight, row.rpm.used, row.cooldown_until), (0, 0, None));
    site.script("sk-a1", Script::Answer(1, 1));
    site.ask("default").await.unwrap();
}

use crate::providers::CandidateId;

#[tokio::test]
async fn counts_after_a_restart_equal_those_before() {
    let lines = [
        Line("alpha", &["a1", "a2"], "m", "default", 1, rpm(40)),
        Line("beta", &["b"], "n", "default", 2, NONE),
    ];
    let mut site = Site::new(&lines).await;
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    for round in 0..30 {
        for _ in 0..random.random_range(1..60) {
            let script = match random.random_range(0..6) {
                0 => status(500, None),
                1 => status(429, Some(10)),
                _ => Script::Answer(random.random_range(0..500), 3),
            };
            site.script("sk-a1", script);
            // Some fail; what counts is that both processes count the same.
            let _ = site.ask("default").await;
            site.clock.advance_ms(random.random_range(0..900));
        }
        let counts = |pool: &Pool| -> Vec<_> {
            let row = |r: ProviderRow| (r.model, r.key_id, r.rpm, r.rpd, r.tpm, r.tpd, r.provider_day);
            pool.status().into_iter().map(row).collect()
        };
        let before = counts(&site.pool);
        site.restart().await;
        assert_eq!(before, counts(&site.pool), "round {round}");
        site.clock.advance_ms(random.random_range(0..9_000_000));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bursts_never_exceed_a_keys_windows() {
    const TPM: u64 = 4_000;
    let limits = Limits {
        rpm: Some(20),
        tpm: Some(TPM),
        ..NONE
    };
    let site = Arc::new(Site::new(&[Line("alpha", &["a1", "a2"], "m", "default", 1, limits)]).await);
    for key in ["sk-a1", "sk-a2"] {
        site.script(key, Script::Busy(250));
    }
    let (mut random, mut asked, begun) = (rand::rngs::StdRng::seed_from_u64(11), 0, site.clock.now());
    let mut calls = tokio::task::JoinSet::new();
    while asked < 10_000 {
        for _ in 0..random.random_range(1..40) {
            let site = site.clone();
            calls.spawn(async move {
                site.pool
                    .call(&site.admission, "default", request(250))
                    .await
                    .is_ok()
            });
            asked += 1;
        }
        site.clock.advance_ms(random.random_range(0..3_000));
        // Now and then all end; mostly calls of many bursts are in flight together.
        if random.random_bool(0.1) {
            while calls.join_next().await.is_some() {}
            site.clock.advance_ms(random.random_range(0..40_000));
        } else {
            tokio::task::yield_now().await;
        }
    }
    while calls.join_next().await.is_some() {}
    let arrivals = site.provider.arrivals.lock();
    for key in ["sk-a1", "sk-a2"] {
        let mut of_key: Vec<_> = arrivals
            .iter()
            .filter(|a| a.key == key)
            .map(|a| (a.at, a.tokens))
            .collect();
        of_key.sort();
        for (at, (from, _)) in of_key.iter().enumerate() {
            let within = of_key[at..]
                .iter()
                .take_while(|(then, _)| then.ms_since(*from) < 60_000);
            let (requests, tokens) = within.fold((0, 0), |(n, sum), (_, tokens)| (n + 1, sum + tokens));
            assert!(
                requests <= 20 && tokens <= TPM,
                "{key}: {requests} requests, {tokens} tokens from {from}"
            );
        }
        let minutes = site.clock.now().ms_since(begun) / 60_000;
        assert!(
            of_key.len() as u64 > minutes * 12,
            "{} calls in {minutes} minutes is hardly used",
            of_key.len()
        );
    }
    assert_eq!(site.pool.status().iter().map(|row| row.in_flight).sum::<u64>(), 0);
}

#[tokio::test]
async fn a_reload_keeps_the_counts_and_takes_the_new_limits() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(1))]).await;
    site.ask("default").await.unwrap();
    assert!(site.ask("default").await.is_err());
    apply(&site.store, &[Line("alpha", &["a1"], "m", "other", 1, rpm(2))]).await;
    assert!(site.pool.knows("default"), "not read yet");
    site.pool.reload().await.unwrap();
    site.ask("other").await.unwrap();
    assert!(matches!(site.ask("other").await, Err(CallError::NoRoom { .. })));
    assert_eq!(
        site.ask("default").await.err(),
        Some(CallError::UnknownModel {
            asked: "default".into()
        })
    );
    apply(&site.store, &[]).await;
    site.pool.reload().await.unwrap();
    assert!(site.pool.models().is_empty());
    apply(&site.store, &[Line("alpha", &["a1"], "m", "default", 1, rpm(2))]).await;
    site.pool.reload().await.unwrap();
    assert!(
        site.ask("default").await.is_err(),
        "a candidate that comes back is still counted"
    );
}

#[tokio::test]
async fn a_running_pool_sees_what_another_process_applies() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    let stop = CancellationToken::new();
    apply(&site.store, &[Line("beta", &["b1"], "n", "default", 1, NONE)]).await;
    let running = tokio::spawn(site.pool.clone().run(stop.clone()));
    let seen = async {
        while !site.pool.knows("beta/n") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), seen)
        .await
        .expect("it looks at once, and then twice a second");
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn names_are_aliases_or_platform_and_model() {
    let lines = [
        Line("router", &["r1"], "openai/gpt-4o-mini", "small", 2, NONE),
        Line("alpha", &["a1"], "m", "small", 1, NONE),
        Line("alpha", &[], "odd", "alpha/m", 1, NONE),
    ];
    let site = Site::new(&lines).await;
    let reply = site.ask("router/openai/gpt-4o-mini").await.unwrap();
    assert_eq!(
        (reply.platform.as_str(), reply.model.as_str()),
        ("router", "openai/gpt-4o-mini")
    );
    assert_eq!(site.ask("small").await.unwrap().platform, "alpha");
    assert_eq!(site.ask("alpha/m").await.unwrap().model, "odd", "an alias wins");
    assert!(matches!(
        site.ask("openai/gpt-4o-mini").await,
        Err(CallError::UnknownModel { .. })
    ));
    let models: Vec<_> = site
        .pool
        .models()
        .into_iter()
        .map(|m| (m.id, m.owned_by))
        .collect();
    let listed = [
        ("small", "router"),
        ("router/openai/gpt-4o-mini", "router"),
        ("alpha/m", "alpha"),
        ("alpha/odd", "alpha"),
    ];
    assert_eq!(
        models,
        listed.map(|(id, owner)| (id.to_owned(), owner.to_owned()))
    );
}

#[tokio::test]
async fn without_a_pool_the_environments_model_answers_and_else_the_demo() {
    let single = SingleModel {
        platform: "groq".into(),
        base_url: "https://groq.example/v1".into(),
        api_key: "sk-env".into(),
        model: "llama/3".into(),
    };
    let mut site = Site::with(
        PoolConfig {
            single: Some(single),
            demo: true,
            ..PoolConfig::default()
        },
        &[],
    )
    .await;
    for asked in ["default", "groq/llama/3"] {
        assert_eq!(site.ask(asked).await.unwrap().model, "llama/3");
    }
    assert_eq!(site.row("llama/3").key_id, "environment");
    site.config.single = None;
    site.restart().await;
    let reply = site.ask("default").await.unwrap();
    assert_eq!(
        (reply.platform.as_str(), reply.model.as_str()),
        ("demo", "demo-1")
    );
    apply(&site.store, &[Line("alpha", &[], "m", "default", 1, NONE)]).await;
    site.pool.reload().await.unwrap();
    assert!(
        matches!(site.ask("default").await, Err(CallError::NoRoom { .. })),
        "a model without a key"
    );
    site.config = PoolConfig::default();
    apply(&site.store, &[]).await;
    site.restart().await;
    assert!(matches!(
        site.ask("default").await,
        Err(CallError::UnknownModel { .. })
    ));
}

#[tokio::test]
async fn a_wrong_secret_key_is_one_sentence_and_loses_nothing() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    let wiring = |secret| Wiring {
        store: site.store.clone(),
        clock: site.clock.clone(),
        secret,
        config: PoolConfig::default(),
        upstream: site.provider.clone(),
        sink: site.rows.clone(),
    };
    let other = SecretKey::from_base64("AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=").unwrap();
    let error = Pool::open(wiring(other)).await.err().unwrap();
    assert!(
        error.contains("\"a1\"") && error.contains("TOLLKEEPER_SECRET_KEY") && !error.contains("sk-"),
        "{error}"
    );
    assert!(Pool::open(wiring(secret())).await.is_ok());
}

#[tokio::test]
async fn what_elsewhere_was_used_counts_and_what_is_old_goes() {
    let mut site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(2))]).await;
    let id = CandidateId::new("alpha", "m", "alpha-a1");
    let quotas = site.pool.quotas().clone();
    quotas.record_request(&id);
    quotas.record_tokens(&id, 40);
    assert!(quotas.can_make_request(&id) && quotas.can_use_tokens(&id, 1_000_000));
    quotas.record_request(&id);
    assert!(!quotas.can_make_request(&id));
    let kinds: Vec<_> = site
        .rows
        .0
        .lock()
        .iter()
        .map(|row| (row.kind, row.tokens))
        .collect();
    assert_eq!(
        kinds,
        [
            (WindowKind::Request, 0),
            (WindowKind::Tokens, 40),
            (WindowKind::Request, 0)
        ]
    );
    site.restart().await;
    let begun = site.clock.now();
    let old = |n: i64| WindowRow {
        platform: "alpha".into(),
        model_id: "m".into(),
        key_id: "alpha-a1".into(),
        kind: WindowKind::Request,
        tokens: 0,
        created_at: begun.plus_ms(-86_400_000 - 200_000 - n),
    };
    let mut tx = site.store.begin().await.unwrap();
    window_row::insert(&mut tx, &(0..1_200).map(old).collect::<Vec<_>>())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut steps = 0;
    while history::prune(&site.store, begun).await.unwrap() {
        steps += 1;
    }
    assert_eq!(steps, 2, "500 at a time");
    let left: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM rate_limit_usage")
        .fetch_one(site.store.read())
        .await
        .unwrap();
    assert_eq!(left, 3);
    assert_eq!(site.row("m").provider_day.used, 2);
}
