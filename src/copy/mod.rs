//! `tollkeeper copy`: everything that is in one database, into another that is empty; of either engine.
//!
//! The source is read in one transaction, so the copy is of one instant also while a server writes. The
//! target is written in one transaction, so it has everything or nothing: a copy that was interrupted has
//! left nothing behind and is begun again. Before that transaction ends, all rows are read back and
//! compared with what was sent, and the audit trail's chain is checked.
//!
//! Tables and columns are those that the database itself tells of (`store::catalog`).

mod rows;
#[cfg(test)]
mod tests;

use sqlx::AssertSqlSafe;

use crate::audit::{self, Verdict};
use crate::store::{Column, DatabaseUrl, Kind, Store, Table, Tx};
use rows::{Print, print, send};

/// Tables in which the migrations put rows: a fresh database has them, and the source's take their place.
const BORN_WITH_ROWS: &[&str] = &["pool_version"];

/// Of the server processes that are running, not of what they serve: it stays where it is.
const NOT_COPIED: &[&str] = &["replicas"];

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// By table, in the order in which they were copied.
    pub tables: Vec<(String, u64)>,
    pub audit_entries: u64,
}

impl Copied {
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|(_, rows)| rows).sum()
    }

    /// Whether keys were copied that only the source's secret key opens.
    pub fn has_sealed_keys(&self) -> bool {
        self.tables.iter().any(|(table, rows)| table == "platform_keys" && *rows > 0)
    }
}

/// Copies; `told` hears of each table whose rows have been written. The target's schema is made where it
/// is missing.
///
/// # Errors
/// A sentence for the operator that begins with `--from` or `--to` where it is about one of them, without
/// addresses. The target then holds no data of the copy.
pub async fn copy(
    from: &DatabaseUrl,
    to: &DatabaseUrl,
    told: impl FnMut(&str, u64),
) -> Result<Copied, String> {
    let source = Store::open_unchanged(from).await.map_err(|why| format!("--from: {why}"))?;
    let mut snapshot = source.long_snapshot().await.map_err(|error| reading(&error))?;
    let copied = copy_snapshot(&source, &mut snapshot, to, told).await;
    let _ = snapshot.rollback().await;
    source.close().await;
    copied
}

async fn copy_snapshot(
    source: &Store,
    snapshot: &mut Tx,
    to: &DatabaseUrl,
    told: impl FnMut(&str, u64),
) -> Result<Copied, String> {
    let target = Store::open(to).await.map_err(|why| format!("--to: {why}"))?;
    let copied = match target.begin_long().await {
        Ok(mut tx) => match fill(source, snapshot, &target, &mut tx, told).await {
            Ok(copied) => tx.commit().await.map(|()| copied).map_err(|error| writing(&error)),
            Err(why) => {
                let _ = tx.rollback().await;
                Err(why)
            }
        },
        Err(error) => Err(writing(&error)),
    };
    target.close().await;
    copied
}

async fn fill(
    source: &Store,
    snapshot: &mut Tx,
    target: &Store,
    tx: &mut Tx,
    told: impl FnMut(&str, u64),
) -> Result<Copied, String> {
    let there = source.tables(&mut *snapshot).await.map_err(|why| format!("--from: {why}"))?;
    let mut here = target.tables(&mut *tx).await.map_err(|why| format!("--to: {why}"))?;
    here.retain(|table| !NOT_COPIED.contains(&table.name.as_str()));
    let tables = in_common(&there, here)?;
    must_be_empty(tx, &tables).await?;
    let sent = write(source, snapshot, target, tx, &tables, told).await?;
    check(target, tx, &tables, &sent).await
}

/// The tables in the target's order, with the kind of each column that the engine with more kinds tells.
fn in_common(source: &[Table], target: Vec<Table>) -> Result<Vec<Table>, String> {
    let differ =
        |what: &str| format!("--to: the two databases differ in the table {what}; nothing was copied");
    let known = |name: &str| NOT_COPIED.contains(&name) || target.iter().any(|other| other.name == name);
    if let Some(only) = source.iter().find(|table| !known(&table.name)) {
        return Err(differ(&only.name));
    }
    let common = |table: Table| {
        let twin = source.iter().find(|other| other.name == table.name);
        let twin = twin.filter(|twin| twin.columns.len() == table.columns.len());
        let columns = table.columns.into_iter().map(|column| {
            let other = twin?.columns.iter().find(|other| other.name == column.name)?;
            let kind = if column.kind == Kind::Text { other.kind } else { column.kind };
            Some(Column { kind, ..column })
        });
        let columns: Option<Vec<Column>> = columns.collect();
        Ok(Table { columns: columns.ok_or_else(|| differ(&table.name))?, name: table.name })
    };
    target.into_iter().map(common).collect()
}

async fn must_be_empty(tx: &mut Tx, tables: &[Table]) -> Result<(), String> {
    for Table { name, .. } in tables {
        let born = BORN_WITH_ROWS.contains(&name.as_str());
        let sql = if born {
            format!("DELETE FROM \"{name}\"")
        } else {
            format!("SELECT 1 FROM \"{name}\" LIMIT 1")
        };
        let row = sqlx::query(AssertSqlSafe(sql))
            .fetch_optional(&mut **tx)
            .await
            .map_err(|error| writing(&error))?;
        if row.is_some() {
            return Err(format!(
                "--to: the database holds data already (in the table {name}); copy takes an empty one"
            ));
        }
    }
    Ok(())
}

/// Sends every table, and tells what each of them was.
async fn write(
    source: &Store,
    snapshot: &mut Tx,
    target: &Store,
    tx: &mut Tx,
    tables: &[Table],
    mut told: impl FnMut(&str, u64),
) -> Result<Vec<Print>, String> {
    // What they keep (the ledger's totals) is copied like everything else.
    let resting = target.rest_triggers(&mut *tx, tables).await.map_err(|error| writing(&error))?;
    let mut sent = Vec::new();
    for table in tables {
        let print = send((source.engine(), &mut *snapshot), (target.engine(), &mut *tx), table).await?;
        told(&table.name, print.rows);
        sent.push(print);
    }
    target.wake_triggers(&mut *tx, resting).await.map_err(|error| writing(&error))?;
    Ok(sent)
}

/// Reads everything back.
async fn check(target: &Store, tx: &mut Tx, tables: &[Table], sent: &[Print]) -> Result<Copied, String> {
    let mut copied = Copied { tables: Vec::new(), audit_entries: 0 };
    for (table, sent) in tables.iter().zip(sent) {
        let found = print((target.engine(), &mut *tx), table).await?;
        let name = &table.name;
        if found.rows != sent.rows {
            return Err(format!(
                "the table {name} has {} rows at the target, and {} were sent; nothing was copied",
                found.rows, sent.rows
            ));
        }
        if found != *sent {
            return Err(format!(
                "the table {name} reads differently at the target than at the source; nothing was copied"
            ));
        }
        copied.tables.push((name.clone(), found.rows));
    }
    match audit::verify_on(&mut *tx).await.map_err(|error| writing(&error))? {
        Verdict::Whole { entries } => copied.audit_entries = entries,
        Verdict::Broken { id, why } => {
            return Err(format!(
                "--from: the audit trail is broken at entry {id}: {why}; nothing was copied"
            ));
        }
    }
    Ok(copied)
}

fn reading(error: &sqlx::Error) -> String {
    format!("--from: the database can't be read: {}", cause(error))
}

fn writing(error: &sqlx::Error) -> String {
    format!("--to: the database can't be written: {}", cause(error))
}

/// The engine's own words without the details, in which the values of a row may stand.
fn cause(error: &sqlx::Error) -> String {
    let text = match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        error => error.to_string(),
    };
    text.replace(['\n', '\r'], " ")
}
