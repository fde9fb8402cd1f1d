//! Checking the chain.

use crate::store::Store;

use super::{FIRST, Hashed, hash};

const STEP: i64 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// So many entries, each with the hash that its fields and the entry before it give.
    Whole { entries: u64 },
    /// The first entry that is not what was written.
    Broken { id: i64, why: &'static str },
}

type Columns = (i64, i64, String, String, Option<String>, Option<String>, Option<String>, String, String);

/// Walks the whole trail from its first entry, a page at a time.
pub async fn verify(store: &Store) -> Result<Verdict, sqlx::Error> {
    let (mut expected_id, mut previous, mut entries) = (1, FIRST.to_owned(), 0);
    loop {
        let rows: Vec<Columns> = sqlx::query_as(
            "SELECT id, at_ms, actor, action, workspace_id, before, after, previous_hash, hash
             FROM audit_log WHERE id >= $1 ORDER BY id LIMIT $2",
        )
        .bind(expected_id)
        .bind(STEP)
        .fetch_all(store.read())
        .await?;
        if rows.is_empty() {
            return Ok(Verdict::Whole { entries });
        }
        for (id, at_ms, actor, action, workspace, before, after, previous_hash, stored) in rows {
            let broken = |why| Ok(Verdict::Broken { id, why });
            if id != expected_id {
                return broken("an entry before it is missing");
            }
            if previous_hash != previous {
                return broken("it does not follow the entry before it");
            }
            let row = Hashed {
                previous: &previous,
                id,
                at_ms,
                actor: &actor,
                action: &action,
                workspace: workspace.as_deref(),
                before: before.as_deref(),
                after: after.as_deref(),
            };
            if hash(&row) != stored {
                return broken("its fields are not those that were written");
            }
            (previous, expected_id, entries) = (stored, id + 1, entries + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Actor, Change, Query, append, list};
    use super::*;
    use crate::model::Timestamp;
    use crate::store::testing::{Fresh, fresh, unlock_audit_trail};

    #[tokio::test]
    async fn a_forged_or_missing_entry_is_found() {
        let Fresh { store, folder: _folder } = fresh().await;
        assert_eq!(verify(&store).await.unwrap(), Verdict::Whole { entries: 0 });
        for n in 0..3 {
            let mut tx = store.begin().await.unwrap();
            let change = Change {
                actor: &Actor::Cli,
                action: "limits.set",
                workspace: Some(&"acme".into()),
                before: Some(json!({ "rate_per_minute": n })),
                after: Some(json!({ "rate_per_minute": n + 1 })),
            };
            append(&mut tx, Timestamp(1_000 + n), change).await.unwrap();
            tx.commit().await.unwrap();
        }
        assert_eq!(verify(&store).await.unwrap(), Verdict::Whole { entries: 3 });
        let newest = list(&store, &Query { limit: 2, ..Query::default() }).await.unwrap();
        assert_eq!(newest.iter().map(|e| e.id).collect::<Vec<_>>(), [3, 2]);

        let run = async |sql: &'static str| {
            let mut tx = store.begin().await.unwrap();
            let done = sqlx::query(sql).execute(&mut *tx).await;
            tx.commit().await.unwrap();
            done
        };
        assert!(
            run("UPDATE audit_log SET actor = 'x' WHERE id = 2").await.is_err(),
            "the trail is append-only"
        );
        unlock_audit_trail(&store).await;
        run("UPDATE audit_log SET after = '{\"rate_per_minute\":9}' WHERE id = 2").await.unwrap();
        assert!(matches!(verify(&store).await.unwrap(), Verdict::Broken { id: 2, .. }));
        run("DELETE FROM audit_log WHERE id = 2").await.unwrap();
        assert!(matches!(verify(&store).await.unwrap(), Verdict::Broken { id: 3, .. }));
    }
}
