//! `tollkeeper apply`: makes the database match a directory file, in one transaction.
//!
//! What a file made is marked `managed` and removed when the file drops it; what was made elsewhere
//! is left and listed. A record that is as the file says is not touched, so a second apply changes
//! nothing. A dry run goes the same way and rolls back at the end.

mod access;
mod content;
mod current;
mod passwords;
mod pool;
mod references;
mod report;

use serde_json::Value;

use super::file::File;
use crate::audit::{self, Actor, Change};
use crate::clock::Clock;
use crate::model::{Timestamp, WorkspaceId};
use crate::providers::SecretKey;
use crate::store::{Store, Tx};
use current::Current;
use report::Settings;

pub use report::Report;

/// Why nothing was changed: one line for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The file is not right: `FILE:LINE: sentence`. Exit code 2.
    #[error("{0}")]
    Form(String),
    /// The database refuses it, or does not answer. Exit code 1.
    #[error("{0}")]
    Refused(String),
}

impl From<sqlx::Error> for ApplyError {
    fn from(error: sqlx::Error) -> Self {
        let said = error.to_string().replace(['\n', '\r'], " ");
        ApplyError::Refused(format!("the database refuses it, and nothing was changed: {said}"))
    }
}

/// Makes the database match the file, or says with `dry_run` what that would change. Providers' keys
/// are stored sealed under `secret_key`.
pub async fn apply(
    store: &Store,
    clock: &dyn Clock,
    secret_key: &SecretKey,
    file: &File,
    dry_run: bool,
) -> Result<Report, ApplyError> {
    // Passwords take their time: they are hashed before the transaction keeps others waiting.
    let current = Current::load(&mut *store.snapshot().await?).await?;
    references::check(file, &current)?;
    let hashes = passwords::settle(file, &current).await?;

    let tx = store.begin().await?;
    let mut run =
        Run { tx, now: clock.now(), secret_key, dry_run, report: Report::default(), pool_changed: false };
    let current = Current::load(&mut run.tx).await?;
    references::check(file, &current)?;

    // What others refer to comes first and goes last.
    access::put_workspaces(&mut run, file, &current).await?;
    access::put_users(&mut run, file, &current, &hashes).await?;
    content::put_sources(&mut run, file, &current).await?;
    content::put_dashboards(&mut run, file, &current).await?;
    pool::put_platforms(&mut run, file, &current).await?;
    content::drop_dashboards(&mut run, file, &current).await?;
    content::drop_sources(&mut run, file, &current).await?;
    access::drop_users(&mut run, file, &current).await?;
    access::drop_workspaces(&mut run, file, &current).await?;
    pool::drop_platforms(&mut run, file, &current).await?;
    run.finish().await
}

/// A record that changes, as the report and the trail name it.
struct Subject<'a> {
    /// The first half of the trail's action.
    noun: &'static str,
    /// What the report calls it. The trail has the name in the settings before and after.
    what: String,
    workspace: Option<&'a str>,
}

impl<'a> Subject<'a> {
    fn new(noun: &'static str, id: &str, workspace: Option<&'a str>) -> Self {
        Subject { noun, what: format!("{noun} {id}"), workspace }
    }
}

/// One apply under way.
struct Run<'a> {
    tx: Tx,
    now: Timestamp,
    secret_key: &'a SecretKey,
    dry_run: bool,
    report: Report,
    pool_changed: bool,
}

impl Run<'_> {
    async fn added(&mut self, subject: Subject<'_>, after: Settings) -> Result<(), sqlx::Error> {
        self.report.added(&subject.what);
        self.record(&format!("{}.add", subject.noun), subject.workspace, None, Some(after)).await
    }

    /// `before` and `after` hold all settings of the record, so that in the trail each `before` is the
    /// `after` of the entry before it.
    async fn changed(
        &mut self,
        subject: Subject<'_>,
        before: Settings,
        after: Settings,
    ) -> Result<(), sqlx::Error> {
        self.report.changed(&subject.what, &before, &after);
        self.record(&format!("{}.change", subject.noun), subject.workspace, Some(before), Some(after)).await
    }

    async fn removed(&mut self, subject: Subject<'_>, before: Settings) -> Result<(), sqlx::Error> {
        self.report.removed(&subject.what);
        self.record(&format!("{}.remove", subject.noun), subject.workspace, Some(before), None).await
    }

    /// A dry run's rehearsal is nobody's change: it leaves no entry and no line in the log.
    async fn record(
        &mut self,
        action: &str,
        workspace: Option<&str>,
        before: Option<Settings>,
        after: Option<Settings>,
    ) -> Result<(), sqlx::Error> {
        if self.dry_run {
            return Ok(());
        }
        let workspace = workspace.map(WorkspaceId::from);
        let change = Change {
            actor: &Actor::Apply,
            action,
            workspace: workspace.as_ref(),
            before: before.map(Value::Object),
            after: after.map(Value::Object),
        };
        audit::append(&mut self.tx, self.now, change).await?;
        Ok(())
    }

    async fn finish(mut self) -> Result<Report, ApplyError> {
        if self.pool_changed {
            sqlx::query("UPDATE pool_version SET version = version + 1 WHERE id = 1")
                .execute(&mut *self.tx)
                .await?;
        }
        if self.dry_run {
            self.tx.rollback().await?;
        } else {
            self.tx.commit().await?;
        }
        Ok(self.report)
    }
}

#[cfg(test)]
mod random_files;
#[cfg(test)]
mod tests;
