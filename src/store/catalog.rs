//! What tables there are, as the database itself tells it: for work that concerns all of them, so that
//! one which a later migration adds is not forgotten.

use std::collections::{HashMap, HashSet};

use sqlx::AssertSqlSafe;

use super::{Connection, Engine, Store};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// In their order in the table.
    pub(crate) columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// What a column holds. SQLite has days and times as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Text,
    Day,
    Time,
}

impl Kind {
    fn parse(declared: &str) -> Option<Self> {
        Some(match declared {
            "INTEGER" | "bigint" => Kind::Integer,
            "TEXT" | "text" => Kind::Text,
            "date" => Kind::Day,
            "timestamp with time zone" => Kind::Time,
            _ => return None,
        })
    }
}

const SQLITE_COLUMNS: &str = "SELECT m.name, c.name, c.type FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name <> '_sqlx_migrations' ORDER BY m.name, c.cid";
const SQLITE_REFERENCES: &str = "SELECT m.name, f.\"table\" FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'";

// A column that numbers or computes itself has a type that is not known here.
const POSTGRES_COLUMNS: &str = "SELECT CAST(c.relname AS TEXT), CAST(a.attname AS TEXT),
        format_type(a.atttypid, NULL) || CAST(a.attidentity AS TEXT) || CAST(a.attgenerated AS TEXT)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = CAST(CAST(current_schema() AS TEXT) AS regnamespace) AND c.relkind IN ('r', 'p')
        AND c.relname <> '_sqlx_migrations' AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY CAST(c.relname AS TEXT) COLLATE \"C\", a.attnum";
const POSTGRES_REFERENCES: &str = "SELECT CAST(c.relname AS TEXT), CAST(p.relname AS TEXT)
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
    WHERE k.contype = 'f' AND c.relnamespace = CAST(CAST(current_schema() AS TEXT) AS regnamespace)";

impl Store {
    /// All tables but the migrations' own, each after those that it refers to.
    ///
    /// # Errors
    /// A sentence, for a column of a type that is not one of [`Kind`].
    pub(crate) async fn tables(&self, on: &mut Connection) -> Result<Vec<Table>, String> {
        let (columns, references) = match self.engine {
            Engine::Sqlite => (SQLITE_COLUMNS, SQLITE_REFERENCES),
            Engine::Postgres => (POSTGRES_COLUMNS, POSTGRES_REFERENCES),
        };
        let failed = |error: sqlx::Error| format!("the list of tables can't be read: {error}");
        let columns: Vec<(String, String, String)> =
            sqlx::query_as(columns).fetch_all(&mut *on).await.map_err(failed)?;
        let references: Vec<(String, String)> =
            sqlx::query_as(references).fetch_all(&mut *on).await.map_err(failed)?;
        let mut tables: Vec<Table> = Vec::new();
        for (table, column, declared) in columns {
            let Some(kind) = Kind::parse(&declared) else {
                return Err(format!(
                    "the column {column} of the table {table} has the unknown type {declared}"
                ));
            };
            let column = Column { name: column, kind };
            match tables.last_mut().filter(|last| last.name == table) {
                Some(last) => last.columns.push(column),
                None => tables.push(Table { name: table, columns: vec![column] }),
            }
        }
        Ok(parents_first(tables, &references))
    }

    /// Turns the triggers off until [`wake_triggers`](Self::wake_triggers), in the transaction `on`.
    pub(crate) async fn rest_triggers(
        &self,
        on: &mut Connection,
        tables: &[Table],
    ) -> Result<Resting, sqlx::Error> {
        match self.engine {
            Engine::Sqlite => {
                let triggers: Vec<(String, String)> =
                    sqlx::query_as("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
                        .fetch_all(&mut *on)
                        .await?;
                for (name, _) in &triggers {
                    run(on, format!("DROP TRIGGER \"{name}\"")).await?;
                }
                Ok(Resting(triggers.into_iter().map(|(_, sql)| sql).collect()))
            }
            Engine::Postgres => {
                let mut wake = Vec::new();
                for Table { name, .. } in tables {
                    // The engine's own, which check references, go on.
                    run(on, format!("ALTER TABLE \"{name}\" DISABLE TRIGGER USER")).await?;
                    wake.push(format!("ALTER TABLE \"{name}\" ENABLE TRIGGER USER"));
                }
                Ok(Resting(wake))
            }
        }
    }

    pub(crate) async fn wake_triggers(
        &self,
        on: &mut Connection,
        resting: Resting,
    ) -> Result<(), sqlx::Error> {
        for statement in resting.0 {
            run(on, statement).await?;
        }
        Ok(())
    }
}

/// The statements that bring the triggers back.
#[must_use = "triggers stay off"]
pub(crate) struct Resting(Vec<String>);

async fn run(on: &mut Connection, sql: String) -> Result<(), sqlx::Error> {
    sqlx::query(AssertSqlSafe(sql)).persistent(false).execute(on).await.map(drop)
}

/// Keeps the order where nothing speaks against it. Tables that refer to each other in a circle come last.
fn parents_first(mut tables: Vec<Table>, references: &[(String, String)]) -> Vec<Table> {
    let mut parents: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (child, parent) in references.iter().filter(|(child, parent)| child != parent) {
        parents.entry(child).or_default().insert(parent);
    }
    let mut sorted: Vec<Table> = Vec::new();
    while !tables.is_empty() {
        let ready = |table: &Table| {
            parents.get(table.name.as_str()).is_none_or(|parents| {
                parents.iter().all(|parent| sorted.iter().any(|done| done.name == *parent))
            })
        };
        let at = tables.iter().position(ready).unwrap_or(0);
        sorted.push(tables.remove(at));
    }
    sorted
}
