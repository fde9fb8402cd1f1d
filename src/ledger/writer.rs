//! The one task that writes usage: it groups what arrives into one transaction and answers each
//! caller when it is committed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::{Settlement, StepUsage, WindowRow, window_row};
use crate::clock::SharedClock;
use crate::model::{Day, Route, UserId, WorkspaceId};
use crate::store::{Store, to_i64};

/// Settlements waiting to be written; past it, requests wait for room.
const QUEUE: usize = 4_096;
/// The most settlements in one transaction.
const GROUP: usize = 256;
/// Refusals, and window rows of no settlement, are collected this long, so that a flood is one write.
const LOOSE_EVERY: Duration = Duration::from_millis(200);
/// Window rows that wait while the database doesn't answer; past it the oldest are forgotten.
const WINDOW_ROWS_MAX: usize = 100_000;
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_secs(2);

/// Which limit refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    Rate,
    Budget,
}

impl Refused {
    pub fn as_str(self) -> &'static str {
        match self {
            Refused::Rate => "rate",
            Refused::Budget => "budget",
        }
    }
}

type Refusals = BTreeMap<(WorkspaceId, Day, Refused), u64>;

#[derive(Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    shared: Arc<Shared>,
}

struct Shared {
    clock: SharedClock,
    loose: Mutex<Loose>,
    /// Since the process started, for the metric.
    refusals_total: Mutex<BTreeMap<(WorkspaceId, Refused), u64>>,
    /// Something loose has come.
    came: Notify,
}

/// What nobody waits for.
#[derive(Default)]
struct Loose {
    refusals: Refusals,
    window_rows: VecDeque<WindowRow>,
}

enum Job {
    Settle(Settlement, oneshot::Sender<()>),
    /// Everything before it has been written when it is answered.
    Flush(oneshot::Sender<()>),
}

impl Writer {
    pub(super) fn start(store: Store, clock: SharedClock, changed: watch::Sender<u64>) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            clock,
            loose: Mutex::default(),
            refusals_total: Mutex::default(),
            came: Notify::new(),
        });
        tokio::spawn(run(store, queue, shared.clone(), changed));
        Self { jobs, shared }
    }

    /// Queues a settlement; the receiver hears when it is committed.
    pub(super) async fn settle(&self, settlement: Settlement) -> oneshot::Receiver<()> {
        let (done, written) = oneshot::channel();
        // Fails only when the writer is gone; the receiver then hears that too.
        let _ = self.jobs.send(Job::Settle(settlement, done)).await;
        written
    }

    pub(super) fn count_refusal(&self, workspace: &WorkspaceId, kind: Refused) {
        let day = self.shared.clock.now().day();
        *self.shared.loose.lock().refusals.entry((workspace.clone(), day, kind)).or_default() += 1;
        *self.shared.refusals_total.lock().entry((workspace.clone(), kind)).or_default() += 1;
        self.shared.came.notify_one();
    }

    pub(super) fn record_window_rows(&self, rows: Vec<WindowRow>) {
        let mut loose = self.shared.loose.lock();
        loose.window_rows.extend(rows);
        let over = loose.window_rows.len().saturating_sub(WINDOW_ROWS_MAX);
        if over > 0 {
            loose.window_rows.drain(..over);
            tracing::warn!(rows = over, "window rows were forgotten: the database has not answered for long");
        }
        drop(loose);
        self.shared.came.notify_one();
    }

    /// Refusals since the process started.
    pub(super) fn refusals(&self) -> Vec<(WorkspaceId, Refused, u64)> {
        self.shared
            .refusals_total
            .lock()
            .iter()
            .map(|((workspace, kind), n)| (workspace.clone(), *kind, *n))
            .collect()
    }

    /// Writes all that is queued.
    pub(super) async fn close(&self) {
        let (done, written) = oneshot::channel();
        if self.jobs.send(Job::Flush(done)).await.is_ok() {
            let _ = written.await;
        }
    }
}

async fn run(store: Store, mut queue: mpsc::Receiver<Job>, shared: Arc<Shared>, changed: watch::Sender<u64>) {
    // When what is loose is written at the latest; settlements take it along.
    let mut loose_due: Option<Instant> = None;
    loop {
        let mut jobs = Vec::new();
        tokio::select! {
            received = queue.recv_many(&mut jobs, GROUP) => {
                if received == 0 {
                    break;
                }
            }
            () = shared.came.notified(), if loose_due.is_none() => {
                loose_due = Some(Instant::now() + LOOSE_EVERY);
                continue;
            }
            () = tokio::time::sleep_until(loose_due.unwrap_or_else(Instant::now)), if loose_due.is_some() => {}
        }
        loose_due = None;

        let loose = std::mem::take(&mut *shared.loose.lock());
        let group = Group::of(&jobs, loose, shared.clock.now().day());
        if !group.is_empty() {
            group.write_until_done(&store).await;
            changed.send_modify(|n| *n = n.wrapping_add(1));
        }
        for job in jobs {
            let (Job::Settle(_, done) | Job::Flush(done)) = job;
            // A request that left does not hear it.
            let _ = done.send(());
        }
    }
}

/// What one transaction adds, each row once, in the order of their keys: writers of several replicas
/// then lock rows in the same order.
#[derive(Default)]
struct Group {
    usage: BTreeMap<(WorkspaceId, Route, String), (StepUsage, u64)>,
    by_user: BTreeMap<(WorkspaceId, UserId), (StepUsage, u64)>,
    refusals: Refusals,
    window_rows: Vec<WindowRow>,
    day: String,
}

impl Group {
    fn of(jobs: &[Job], loose: Loose, today: Day) -> Self {
        let Loose { refusals, window_rows } = loose;
        let mut group =
            Group { refusals, window_rows: window_rows.into(), day: today.ymd(), ..Group::default() };
        for job in jobs {
            let Job::Settle(settlement, _) = job else { continue };
            group.window_rows.extend(settlement.window_rows.iter().cloned());
            let last = settlement.parts.len().saturating_sub(1);
            for (at, (model, step)) in settlement.parts.iter().enumerate() {
                let requests = u64::from(at == last);
                let key = (settlement.workspace.clone(), settlement.route, model.clone());
                let user = (settlement.workspace.clone(), settlement.user.clone());
                for (sum, count) in
                    [group.usage.entry(key).or_default(), group.by_user.entry(user).or_default()]
                {
                    *sum += *step;
                    *count += requests;
                }
            }
        }
        group
    }

    fn is_empty(&self) -> bool {
        self.usage.is_empty() && self.refusals.is_empty() && self.window_rows.is_empty()
    }

    /// Usage is never dropped: while the database fails, this tries again, and the queue behind it
    /// holds requests back.
    async fn write_until_done(&self, store: &Store) {
        let mut pause = RETRY_FIRST;
        while let Err(error) = self.write(store).await {
            tracing::error!(error = %error, retry_ms = pause.as_millis(), "usage could not be written yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_LAST);
        }
    }

    async fn write(&self, store: &Store) -> Result<(), sqlx::Error> {
        let mut tx = store.begin_counting().await?;
        for ((workspace, route, model), (sum, requests)) in &self.usage {
            sqlx::query(
                "INSERT INTO llm_usage (workspace_id, day, route, model, input_tokens, output_tokens, requests,
                                        estimated_input_tokens, estimated_output_tokens)
                 VALUES ($1, date($2), $3, $4, $5, $6, $7, $8, $9)
                 ON CONFLICT (workspace_id, day, route, model) DO UPDATE SET
                   input_tokens = llm_usage.input_tokens + excluded.input_tokens,
                   output_tokens = llm_usage.output_tokens + excluded.output_tokens,
                   requests = llm_usage.requests + excluded.requests,
                   estimated_input_tokens = llm_usage.estimated_input_tokens + excluded.estimated_input_tokens,
                   estimated_output_tokens = llm_usage.estimated_output_tokens + excluded.estimated_output_tokens",
            )
            .bind(workspace.as_str().to_owned())
            .bind(self.day.clone())
            .bind(route.as_str())
            .bind(model.clone())
            .bind(to_i64(sum.usage.input_tokens))
            .bind(to_i64(sum.usage.output_tokens))
            .bind(to_i64(*requests))
            .bind(to_i64(sum.estimated.input_tokens))
            .bind(to_i64(sum.estimated.output_tokens))
            .execute(&mut *tx)
            .await?;
        }
        for ((workspace, user), (sum, requests)) in &self.by_user {
            sqlx::query(
                "INSERT INTO llm_usage_by_user (workspace_id, day, user_id, input_tokens, output_tokens, requests)
                 VALUES ($1, date($2), $3, $4, $5, $6)
                 ON CONFLICT (workspace_id, day, user_id) DO UPDATE SET
                   input_tokens = llm_usage_by_user.input_tokens + excluded.input_tokens,
                   output_tokens = llm_usage_by_user.output_tokens + excluded.output_tokens,
                   requests = llm_usage_by_user.requests + excluded.requests",
            )
            .bind(workspace.as_str().to_owned())
            .bind(self.day.clone())
            .bind(user.as_str().to_owned())
            .bind(to_i64(sum.usage.input_tokens))
            .bind(to_i64(sum.usage.output_tokens))
            .bind(to_i64(*requests))
            .execute(&mut *tx)
            .await?;
        }
        window_row::insert(&mut tx, &self.window_rows).await?;
        for ((workspace, day, kind), refused) in &self.refusals {
            sqlx::query(
                "INSERT INTO llm_refusals (workspace_id, day, kind, refused) VALUES ($1, date($2), $3, $4)
                 ON CONFLICT (workspace_id, day, kind) DO UPDATE SET refused = llm_refusals.refused + excluded.refused",
            )
            .bind(workspace.as_str().to_owned())
            .bind(day.ymd())
            .bind(kind.as_str())
            .bind(to_i64(*refused))
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await
    }
}
