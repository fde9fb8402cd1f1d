//! The rows of one table on their way: read one after the other, written some at a time.

use futures::TryStreamExt as _;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Row as _};

use super::{cause, reading, writing};
use crate::store::{Column, Connection, Engine, Kind, Row, Table};

/// Rows in one statement, and the bytes of text after which it is full anyhow: what a copy holds in memory.
const ROWS: usize = 250;
const BYTES: usize = 1024 * 1024;

type End<'c> = (Engine, &'c mut Connection);

/// What two tables with the same rows have in common, in whichever order they are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) rows: u64,
    /// The sum of the rows' hashes.
    sum: u128,
}

enum Value {
    Integer(Option<i64>),
    Text(Option<String>),
}

pub(super) async fn send(source: End<'_>, target: End<'_>, table: &Table) -> Result<Print, String> {
    let ((from, source), (to, target)) = (source, target);
    let sql = select(from, table);
    let mut stream = sqlx::query(AssertSqlSafe(sql)).persistent(false).fetch(source);
    let mut sent = Print::default();
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(row) = stream.try_next().await.map_err(|error| reading(&error))? {
        let values = values(&row, table).map_err(|error| unreadable("--from", table, &error))?;
        sent.add(&values, table);
        bytes += values.iter().map(Value::bytes).sum::<usize>();
        batch.push(values);
        if batch.len() == ROWS || bytes >= BYTES {
            insert(to, target, table, std::mem::take(&mut batch)).await?;
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        insert(to, target, table, batch).await?;
    }
    Ok(sent)
}

pub(super) async fn print(end: End<'_>, table: &Table) -> Result<Print, String> {
    let (engine, connection) = end;
    let sql = select(engine, table);
    let mut stream = sqlx::query(AssertSqlSafe(sql)).persistent(false).fetch(connection);
    let mut print = Print::default();
    while let Some(row) = stream.try_next().await.map_err(|error| writing(&error))? {
        print.add(&values(&row, table).map_err(|error| unreadable("--to", table, &error))?, table);
    }
    Ok(print)
}

async fn insert(
    engine: Engine,
    target: &mut Connection,
    table: &Table,
    rows: Vec<Vec<Value>>,
) -> Result<(), String> {
    let mut place = 0;
    let mut tuple = || {
        let places = table.columns.iter().map(|column| {
            place += 1;
            written(engine, column.kind, place)
        });
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    let tuples: Vec<String> = rows.iter().map(|_| tuple()).collect();
    let names: Vec<String> = table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let sql = format!("INSERT INTO \"{}\" ({}) VALUES {}", table.name, names.join(", "), tuples.join(", "));
    let full = rows.len() == ROWS;
    let query = sqlx::query(AssertSqlSafe(sql)).persistent(full);
    let query = rows.into_iter().flatten().fold(query, |query, value| match value {
        Value::Integer(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
    });
    query
        .execute(target)
        .await
        .map(drop)
        .map_err(|error| format!("--to: the table {} does not take a row: {}", table.name, cause(&error)))
}

fn select(engine: Engine, table: &Table) -> String {
    let columns: Vec<String> = table.columns.iter().map(|column| read(engine, column)).collect();
    format!("SELECT {} FROM \"{}\"", columns.join(", "), table.name)
}

/// A column as an integer or as text.
fn read(engine: Engine, column: &Column) -> String {
    let name = &column.name;
    match (engine, column.kind) {
        (Engine::Postgres, Kind::Day) => format!("CAST(\"{name}\" AS TEXT)"),
        (Engine::Postgres, Kind::Time) => {
            format!("to_char(\"{name}\" AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
        }
        _ => format!("\"{name}\""),
    }
}

/// Where such a value stands in a statement that writes it.
fn written(engine: Engine, kind: Kind, place: usize) -> String {
    match (engine, kind) {
        (Engine::Postgres, Kind::Day) => format!("CAST(${place} AS DATE)"),
        (Engine::Postgres, Kind::Time) => format!("CAST(${place} AS TIMESTAMPTZ)"),
        _ => format!("${place}"),
    }
}

fn values(row: &Row, table: &Table) -> Result<Vec<Value>, sqlx::Error> {
    let value = |(at, column): (usize, &Column)| match column.kind {
        Kind::Integer => row.try_get(at).map(Value::Integer),
        Kind::Text | Kind::Day | Kind::Time => row.try_get(at).map(Value::Text),
    };
    table.columns.iter().enumerate().map(value).collect()
}

fn unreadable(end: &str, table: &Table, error: &sqlx::Error) -> String {
    format!("{end}: a row of the table {} can't be read: {}", table.name, cause(error))
}

impl Value {
    fn bytes(&self) -> usize {
        match self {
            Value::Text(Some(text)) => text.len(),
            Value::Text(None) | Value::Integer(_) => size_of::<i64>(),
        }
    }
}

impl Print {
    fn add(&mut self, values: &[Value], table: &Table) {
        let mut hash = Sha256::new();
        for (value, column) in values.iter().zip(&table.columns) {
            // The engines write times differently: here it only counts whether there is one.
            let time = column.kind == Kind::Time;
            match value {
                Value::Integer(None) | Value::Text(None) => hash.update([0]),
                Value::Text(Some(_)) if time => hash.update([1]),
                Value::Integer(Some(number)) => {
                    hash.update([2]);
                    hash.update(number.to_be_bytes());
                }
                Value::Text(Some(text)) => {
                    hash.update([3]);
                    hash.update(text.len().to_be_bytes());
                    hash.update(text);
                }
            }
        }
        let hash = hash.finalize();
        let half = hash.first_chunk().expect("SHA-256 has 32 bytes, and half of them are taken");
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from_be_bytes(*half));
    }
}
