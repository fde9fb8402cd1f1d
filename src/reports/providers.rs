//! The providers' page, with the change that led to it.

use super::{Reports, audit_lines};
use crate::audit::{self, Entry};
use crate::model::Error;
use crate::model::providers::ProvidersPage;
use crate::model::reports::AuditLine;
use crate::providers::Pool;

impl Reports {
    /// The pool as it stands, and the entry of the trail `done`, if it is one of the pool's.
    pub async fn providers_page(&self, pool: &Pool, done: Option<i64>) -> Result<ProvidersPage, Error> {
        let page = pool.page().await?;
        let done = match done {
            Some(id) => self.pool_entry(id).await?,
            None => None,
        };
        Ok(ProvidersPage { done, ..page })
    }

    async fn pool_entry(&self, id: i64) -> Result<Option<AuditLine>, Error> {
        let query = audit::Query { before: Some(id.saturating_add(1)), limit: 1, ..audit::Query::default() };
        let entry = audit::list(&self.store, &query).await?.into_iter().next();
        let ours = |entry: &Entry| entry.id == id && entry.action.starts_with("platform");
        Ok(entry.filter(ours).map(audit_lines::line))
    }
}
