//! Settings → Audit: the trail, filtered and paged by key.

use super::{Reports, audit_line};
use crate::audit;
use crate::model::reports::{AuditPage, AuditQuery, PAGE_SIZE};
use crate::model::{Day, Error, Timestamp};

impl Reports {
    /// # Errors
    /// `Invalid` for a day that is none.
    pub async fn audit_page(&self, asked: &AuditQuery) -> Result<AuditPage, Error> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let size = usize::try_from(PAGE_SIZE).unwrap_or(usize::MAX);
        let query = audit::Query {
            workspace: given(&asked.workspace).map(Into::into),
            actor: given(&asked.actor),
            from: day("From", given(&asked.from), Day::start)?,
            to: day("To", given(&asked.to), Day::end)?,
            before: asked.before.filter(|_| asked.after.is_none()),
            after: asked.after,
            // One more tells whether there is another page.
            limit: i64::from(PAGE_SIZE) + 1,
        };
        let mut entries = audit::list(&self.store, &query).await?;
        let more = entries.len() > size;
        if more && query.after.is_some() {
            entries.remove(0);
        }
        entries.truncate(size);
        let (first, last) = (entries.first().map(|entry| entry.id), entries.last().map(|entry| entry.id));
        let (newer, older) = match (query.before, query.after) {
            (_, Some(after)) => (first.filter(|_| more), last.or(Some(after + 1))),
            (Some(before), None) => (first.or(Some(before - 1)), last.filter(|_| more)),
            (None, None) => (None, last.filter(|_| more)),
        };
        Ok(AuditPage { lines: entries.into_iter().map(audit_line).collect(), newer, older })
    }
}

fn day(name: &str, text: Option<String>, bound: fn(Day) -> Timestamp) -> Result<Option<Timestamp>, Error> {
    let Some(text) = text else { return Ok(None) };
    let day =
        Day::parse(&text).ok_or_else(|| Error::Invalid(format!("{name} has to be a day, YYYY-MM-DD")))?;
    Ok(Some(bound(day)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Actor, Change};
    use crate::clock::ManualClock;
    use crate::model::Limit;
    use crate::model::limit::Defaults;
    use crate::store::{DatabaseUrl, Store};

    /// Entries 1 to 60, one an hour from 1970-01-01 on, by turns of the command line and of `apply`.
    async fn reports(folder: &tempfile::TempDir) -> Reports {
        let store = Store::open(&DatabaseUrl::Sqlite(folder.path().join("x.db"))).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        for n in 0..60 {
            let actor = if n % 2 == 0 { Actor::Cli } else { Actor::Apply };
            let change = Change {
                actor: &actor,
                action: "limits.set",
                workspace: Some(&"acme".into()),
                before: None,
                after: None,
            };
            audit::append(&mut tx, Timestamp(n * 3_600_000), change).await.unwrap();
        }
        tx.commit().await.unwrap();
        let defaults = Defaults { rate: Limit::Of(20), budget: Limit::Disabled };
        Reports::new(store, ManualClock::new(Timestamp(0)), defaults)
    }

    fn ids(page: &AuditPage) -> (i64, i64) {
        (page.lines.first().unwrap().id, page.lines.last().unwrap().id)
    }

    #[tokio::test]
    async fn pages_lead_there_and_back() {
        let folder = tempfile::tempdir().unwrap();
        let reports = reports(&folder).await;
        let page = async |before, after| {
            reports.audit_page(&AuditQuery { before, after, ..AuditQuery::default() }).await.unwrap()
        };
        let first = page(None, None).await;
        assert_eq!((ids(&first), first.newer, first.older), ((60, 36), None, Some(36)));
        let second = page(first.older, None).await;
        assert_eq!((ids(&second), second.newer, second.older), ((35, 11), Some(35), Some(11)));
        let third = page(second.older, None).await;
        assert_eq!((ids(&third), third.newer, third.older), ((10, 1), Some(10), None));
        assert_eq!(page(None, third.newer).await, second);
        let back = page(None, second.newer).await;
        assert_eq!((ids(&back), back.newer), ((60, 36), None));
    }

    #[tokio::test]
    async fn filters_narrow_it() {
        let folder = tempfile::tempdir().unwrap();
        let reports = reports(&folder).await;
        let count = async |workspace: &str, actor: &str, from: &str, to: &str| {
            let [workspace, actor, from, to] = [workspace, actor, from, to].map(str::to_owned);
            let query = AuditQuery { workspace, actor, from, to, before: None, after: None };
            reports.audit_page(&query).await.map(|page| page.lines.len())
        };
        assert_eq!(count("acme", " apply ", "1970-01-01", "1970-01-01").await, Ok(12));
        assert_eq!(count("", "cli", "1970-01-03", "").await, Ok(6));
        assert_eq!(count("globex", "", "", "").await, Ok(0));
        assert_eq!(count("", "", "yesterday", "").await.unwrap_err().status(), 422);
    }
}
