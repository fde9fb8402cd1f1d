//! A fresh database a test, of the engine that `TEST_ENGINE` names: `sqlite` (also when unset), or
//! `postgres` at `TEST_POSTGRES_URL`, whose user may create databases.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Column as _, Row as _};

use super::{DatabaseUrl, Engine, Row, Store};

pub(crate) struct Fresh {
    pub(crate) store: Store,
    /// The SQLite file's folder, or where other files of a test go.
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) async fn fresh() -> Fresh {
    let folder = tempfile::tempdir().unwrap();
    let url = match std::env::var("TEST_ENGINE").as_deref() {
        Err(_) | Ok("sqlite") => DatabaseUrl::Sqlite(folder.path().join("x.db")),
        Ok("postgres") => DatabaseUrl::Postgres(new_postgres(&folder).await),
        Ok(other) => panic!("TEST_ENGINE: {other} is neither sqlite nor postgres"),
    };
    Fresh { store: Store::open(&url).await.unwrap(), folder }
}

/// Named after the temporary folder, which no other test has.
async fn new_postgres(folder: &tempfile::TempDir) -> String {
    let server =
        std::env::var("TEST_POSTGRES_URL").expect("TEST_POSTGRES_URL is set where TEST_ENGINE is postgres");
    let unique: String = folder
        .path()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let name = format!("unit_{}_{}", unique.to_lowercase(), std::process::id());
    sqlx::any::install_default_drivers();
    let admin = sqlx::AnyPool::connect(&server).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&admin).await.unwrap();
    admin.close().await;
    let (address, _) = server.rsplit_once('/').unwrap();
    format!("{address}/{name}")
}

impl Fresh {
    /// Runs a statement as another program would.
    pub(crate) async fn run(&self, sql: &'static str) -> Result<(), sqlx::Error> {
        let mut tx = self.store.begin().await?;
        sqlx::query(sql).execute(&mut *tx).await?;
        tx.commit().await
    }
}

/// Rows by table, each as text.
pub(crate) type Dump = BTreeMap<String, Vec<String>>;

/// Every row of every table of ours.
pub(crate) async fn dump(store: &Store) -> Dump {
    let names = match store.engine {
        Engine::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table'",
        Engine::Postgres => "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'",
    };
    let tables: Vec<String> = sqlx::query_scalar(names).fetch_all(store.read()).await.unwrap();
    let mut dump = Dump::new();
    for table in tables.into_iter().filter(|table| !table.starts_with('_')) {
        let select = match store.engine {
            Engine::Sqlite => format!("SELECT * FROM {table}"),
            // The driver can't read dates as they are.
            Engine::Postgres => format!("SELECT CAST(row_to_json(t) AS TEXT) FROM {table} t"),
        };
        let rows = sqlx::query(AssertSqlSafe(select)).fetch_all(store.read()).await.unwrap();
        let mut rows: Vec<String> = rows.iter().map(shown).collect();
        rows.sort();
        dump.insert(table, rows);
    }
    dump
}

fn shown(row: &Row) -> String {
    let cells = row.columns().iter().map(|column| {
        let at = column.ordinal();
        let number = row.try_get::<Option<i64>, _>(at).map(|n| format!("{n:?}"));
        let cell = number.or_else(|_| row.try_get::<Option<String>, _>(at).map(|t| format!("{t:?}")));
        format!("{}={}", column.name(), cell.unwrap())
    });
    cells.collect::<Vec<_>>().join(" ")
}

/// Lets the audit trail be forged, as someone with the database's password could.
pub(crate) async fn unlock_audit_trail(store: &Store) {
    let statements: &[&str] = match store.engine {
        Engine::Sqlite => {
            &["DROP TRIGGER audit_log_is_append_only_u", "DROP TRIGGER audit_log_is_append_only_d"]
        }
        Engine::Postgres => &["ALTER TABLE audit_log DISABLE TRIGGER USER"],
    };
    for statement in statements {
        let mut tx = store.begin().await.unwrap();
        sqlx::query(*statement).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }
}
