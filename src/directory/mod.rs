//! The directory: which workspace owns a source or a dashboard, and how both come to be there.
//!
//! Who may see a record is `identity`'s to say; the lookups here answer for whoever asks. `apply`
//! makes the database match a file, `demo` fills an empty one.

pub mod apply;
pub mod demo;
pub mod file;
mod list;

use serde_json::json;

use crate::audit::{self, Actor, Change};
use crate::clock::SharedClock;
use crate::model::dashboard::{Column, DashboardRow, SourceKind, Spec};
use crate::model::ids::is_id;
use crate::model::{Error, WorkspaceId};
use crate::store::Store;

pub use apply::{ApplyError, Report, apply};
pub use demo::{DemoLogin, make_demo};
pub use file::File;
pub use list::{LIST_MAX, Page};

/// A source with its inline rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub id: String,
    pub workspace: WorkspaceId,
    pub name: String,
    pub kind: SourceKind,
    pub columns: Vec<Column>,
    /// Each as wide as `columns`; none where the definition has none.
    pub rows: Vec<Vec<serde_json::Value>>,
}

/// A dashboard; its `source` is of the same workspace.
pub type Dashboard = DashboardRow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub name: String,
}

/// Looks records up and saves specs. Ids come from anywhere: what can't be an id is not found.
#[derive(Clone)]
pub struct Directory {
    store: Store,
    clock: SharedClock,
}

impl Directory {
    pub fn new(store: Store, clock: SharedClock) -> Self {
        Self { store, clock }
    }

    pub async fn workspace(&self, id: &str) -> Result<Option<Workspace>, Error> {
        if !is_id(id) {
            return Ok(None);
        }
        let row: Option<(String, String)> = sqlx::query_as("SELECT id, name FROM workspaces WHERE id = $1")
            .bind(id)
            .fetch_optional(self.store.read())
            .await?;
        Ok(row.map(|(id, name)| Workspace { id: id.into(), name }))
    }

    pub async fn workspace_exists(&self, id: &str) -> Result<bool, Error> {
        Ok(self.workspace(id).await?.is_some())
    }

    pub async fn source(&self, id: &str) -> Result<Option<Source>, Error> {
        if !is_id(id) {
            return Ok(None);
        }
        let row: Option<(String, String, String, String, String, Option<String>)> = sqlx::query_as(
            "SELECT id, workspace_id, name, kind, columns, inline_rows FROM sources WHERE id = $1",
        )
        .bind(id)
        .fetch_optional(self.store.read())
        .await?;
        let Some((id, workspace, name, kind, columns, rows)) = row else {
            return Ok(None);
        };
        let source = Source {
            kind: list::kind(&id, &kind)?,
            columns: list::json(&id, &columns)?,
            rows: rows.map(|rows| list::json(&id, &rows)).transpose()?.unwrap_or_default(),
            workspace: workspace.into(),
            id,
            name,
        };
        Ok(Some(source))
    }

    pub async fn dashboard(&self, id: &str) -> Result<Option<Dashboard>, Error> {
        if !is_id(id) {
            return Ok(None);
        }
        let row: Option<(String, String, String, String, Option<String>)> =
            sqlx::query_as("SELECT id, workspace_id, source_id, name, spec FROM dashboards WHERE id = $1")
                .bind(id)
                .fetch_optional(self.store.read())
                .await?;
        let Some((id, workspace, source, name, spec)) = row else {
            return Ok(None);
        };
        let spec = spec.map(|spec| list::json(&id, &spec)).transpose()?;
        Ok(Some(Dashboard { workspace: workspace.into(), id, source, name, spec }))
    }

    /// Saves a spec, if it fits the columns that the dashboard's source has by then. The same spec
    /// again changes nothing.
    pub async fn save_spec(&self, dashboard: &Dashboard, spec: &Spec, actor: &Actor) -> Result<(), Error> {
        let text = serde_json::to_string(spec).map_err(|_| Error::Internal)?;
        let mut tx = self.store.begin().await?;
        let row: Option<(Option<String>, String)> = sqlx::query_as(
            "SELECT dashboards.spec, sources.columns FROM dashboards JOIN sources ON sources.id = dashboards.source_id
             WHERE dashboards.id = $1 AND dashboards.workspace_id = $2",
        )
        .bind(&dashboard.id)
        .bind(dashboard.workspace.as_str())
        .fetch_optional(&mut *tx)
        .await?;
        let Some((before, columns)) = row else {
            return Err(Error::no_such("dashboard", &dashboard.id));
        };
        let columns: Vec<Column> = list::json(&dashboard.id, &columns)?;
        spec.check(&columns).map_err(Error::Invalid)?;
        if before.as_deref() == Some(&text) {
            return Ok(());
        }
        sqlx::query("UPDATE dashboards SET spec = $1 WHERE id = $2")
            .bind(&text)
            .bind(&dashboard.id)
            .execute(&mut *tx)
            .await?;
        // A spec is content: the trail has its size alone.
        let before =
            before.and_then(|text| serde_json::from_str::<Spec>(&text).ok()).map(|spec| spec.widgets.len());
        let change = Change {
            actor,
            action: "dashboard.update",
            workspace: Some(&dashboard.workspace),
            before: Some(json!({ "dashboard": dashboard.id, "widgets": before })),
            after: Some(json!({ "dashboard": dashboard.id, "widgets": spec.widgets.len() })),
        };
        audit::append(&mut tx, self.clock.now(), change).await?;
        tx.commit().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
