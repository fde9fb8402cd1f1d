//! The lists of what a caller may see, a page at a time.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sqlx::AssertSqlSafe;

use super::{Directory, Workspace};
use crate::model::dashboard::{DashboardRow, SourceKind, SourceRow};
use crate::model::ids::is_id;
use crate::model::{Error, WorkspaceId};

/// The most rows of an answer, and the number where none is asked for.
pub const LIST_MAX: i64 = 10_000;

/// Which part of a list, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// Only what comes after this id: the last one of the page before.
    pub after: Option<String>,
    /// Rows at most, 1 to 10,000; 10,000 where it is left out.
    #[param(minimum = 1, maximum = 10_000)]
    pub limit: Option<i64>,
}

impl Page {
    fn limit(&self) -> Result<i64, Error> {
        match self.limit {
            None => Ok(LIST_MAX),
            Some(limit) if (1..=LIST_MAX).contains(&limit) => Ok(limit),
            Some(_) => Err(Error::Invalid("limit has to be a whole number from 1 to 10000".into())),
        }
    }

    /// Less than every id, where the list begins at its start.
    fn after(&self) -> Result<&str, Error> {
        match self.after.as_deref() {
            None | Some("") => Ok(""),
            Some(id) if is_id(id) => Ok(id),
            Some(_) => Err(Error::Invalid("after has to be an id of the page before".into())),
        }
    }
}

impl Directory {
    /// Sources by id: of these workspaces, or of all where none are named.
    pub async fn sources_of(&self, of: Option<&[WorkspaceId]>, page: &Page) -> Result<Vec<SourceRow>, Error> {
        let select = "SELECT id, workspace_id, name, kind, columns FROM sources";
        let rows: Vec<(String, String, String, String, String)> =
            self.rows(select, "workspace_id", of, page).await?;
        rows.into_iter()
            .map(|(id, workspace, name, kind, columns)| {
                let (kind, columns) = (self::kind(&id, &kind)?, json(&id, &columns)?);
                Ok(SourceRow { id, workspace: workspace.into(), name, kind, columns })
            })
            .collect()
    }

    /// Dashboards by id, without their specs: of these workspaces, or of all where none are named.
    pub async fn dashboards_of(
        &self,
        of: Option<&[WorkspaceId]>,
        page: &Page,
    ) -> Result<Vec<DashboardRow>, Error> {
        let select = "SELECT id, workspace_id, source_id, name FROM dashboards";
        let rows: Vec<(String, String, String, String)> = self.rows(select, "workspace_id", of, page).await?;
        let row = |(id, workspace, source, name): (String, String, String, String)| DashboardRow {
            workspace: workspace.into(),
            id,
            source,
            name,
            spec: None,
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// Workspaces by id: these, or all where none are named.
    pub async fn workspaces(&self, of: Option<&[WorkspaceId]>, page: &Page) -> Result<Vec<Workspace>, Error> {
        let rows: Vec<(String, String)> =
            self.rows("SELECT id, name FROM workspaces", "id", of, page).await?;
        Ok(rows.into_iter().map(|(id, name)| Workspace { id: id.into(), name }).collect())
    }

    /// `select` and `column` are constants of this file; what came from outside is bound.
    async fn rows<T>(
        &self,
        select: &'static str,
        column: &'static str,
        of: Option<&[WorkspaceId]>,
        page: &Page,
    ) -> Result<Vec<T>, Error>
    where
        T: for<'r> sqlx::FromRow<'r, crate::store::Row> + Send + Unpin,
    {
        let (after, limit) = (page.after()?, page.limit()?);
        if of.is_some_and(<[WorkspaceId]>::is_empty) {
            return Ok(Vec::new());
        }
        let mut sql = format!("{select} WHERE id > $1");
        if let Some(of) = of {
            let places: Vec<String> = (0..of.len()).map(|n| format!("${}", n + 3)).collect();
            sql = format!("{sql} AND {column} IN ({})", places.join(", "));
        }
        sql.push_str(" ORDER BY id LIMIT $2");
        let mut statement = sqlx::query_as::<_, T>(AssertSqlSafe(sql)).bind(after.to_owned()).bind(limit);
        for workspace in of.into_iter().flatten() {
            statement = statement.bind(workspace.as_str().to_owned());
        }
        Ok(statement.fetch_all(self.store.read()).await?)
    }
}

/// What a column of ours holds as JSON. That it can't be read is a fault of ours or of who wrote it.
pub(super) fn json<T: DeserializeOwned>(id: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(record = id, error = %error, "a stored definition can't be read");
        Error::Internal
    })
}

pub(super) fn kind(id: &str, text: &str) -> Result<SourceKind, Error> {
    SourceKind::parse(text).ok_or_else(|| {
        tracing::error!(record = id, "a stored source has an unknown kind");
        Error::Internal
    })
}
