//! What was used: metered while a request runs, settled when it ends, written in groups.
//!
//! [`Meter`] collects, [`Ledger::settle`] waits until the usage is committed, [`read`] answers what
//! was used. Work that must not end with its request runs in [`Ledger::outlive`].

mod meter;
pub mod read;
pub mod window_row;
mod writer;

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::clock::SharedClock;
use crate::model::{Error, Route, UserId, WorkspaceId};
use crate::store::Store;

pub use meter::{Meter, StepUsage};
pub use window_row::{WindowKind, WindowRow};
pub use writer::Refused;

/// How long a request waits for its usage to be committed before it is told that it can't be.
const SETTLE_WITHIN: Duration = Duration::from_secs(15);

/// What one finished request used.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub workspace: WorkspaceId,
    pub user: UserId,
    pub route: Route,
    /// By upstream model; the request itself is counted on the last.
    pub parts: Vec<(String, StepUsage)>,
    /// What its calls count in the provider keys' windows.
    pub window_rows: Vec<WindowRow>,
}

#[derive(Clone)]
pub struct Ledger {
    writer: writer::Writer,
    running: TaskTracker,
    changed: watch::Sender<u64>,
}

impl Ledger {
    /// Starts the writer.
    pub fn start(store: Store, clock: SharedClock) -> Self {
        let (changed, _) = watch::channel(0);
        Self {
            writer: writer::Writer::start(store, clock, changed.clone()),
            running: TaskTracker::new(),
            changed,
        }
    }

    /// Returns once the usage is committed. It stays queued and is written when the database answers
    /// again even where this gives up waiting.
    pub async fn settle(&self, settlement: Settlement) -> Result<(), Error> {
        let unrecorded =
            || Error::Unavailable("the answer's usage could not be recorded in time; try again later".into());
        let written = self.writer.settle(settlement).await;
        match tokio::time::timeout(SETTLE_WITHIN, written).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(unrecorded()),
        }
    }

    /// Counts a refusal. Written within a fraction of a second, in groups.
    pub fn count_refusal(&self, workspace: &WorkspaceId, kind: Refused) {
        self.writer.count_refusal(workspace, kind);
    }

    /// Writes window rows that belong to no settlement, soon and in groups.
    pub fn record_window_rows(&self, rows: Vec<WindowRow>) {
        self.writer.record_window_rows(rows);
    }

    /// Refusals since the process started, by workspace and limit.
    pub fn refusals(&self) -> Vec<(WorkspaceId, Refused, u64)> {
        self.writer.refusals()
    }

    /// Runs work that goes on when its request is gone; shutdown waits for it.
    pub fn outlive<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.running.spawn(work)
    }

    /// Changes whenever usage, refusals or limits were written.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Tells those who watch that something they show has changed.
    pub fn announce(&self) {
        self.changed.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Waits for requests under way and writes what is queued, within `deadline`.
    /// False: something was still running or unwritten then.
    pub async fn close(&self, deadline: Duration) -> bool {
        self.running.close();
        tokio::time::timeout(deadline, async {
            self.running.wait().await;
            self.writer.close().await;
        })
        .await
        .is_ok()
    }
}
