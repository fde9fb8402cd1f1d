//! A database that fails for a while, a process that ends amid a turn, a wrong secret key.

use super::*;
use crate::ledger::Ledger;
use crate::store::testing::{dump, postgres_address};
use crate::store::{DatabaseUrl, Tx};

/// Makes every write and read of the windows' table fail, or ends that.
async fn table_is_there(store: &Store, there: bool) {
    let rename = if there {
        "ALTER TABLE windows_away RENAME TO rate_limit_usage"
    } else {
        "ALTER TABLE rate_limit_usage RENAME TO windows_away"
    };
    let mut tx = store.begin().await.unwrap();
    sqlx::query(rename).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

const LINES: [Line; 1] = [Line(
    "alpha",
    &["a1", "a2"],
    "m",
    "default",
    1,
    Limits { rpm: Some(3), rpd: None, tpm: None, tpd: None },
)];

#[tokio::test]
async fn memory_decides_while_the_windows_table_fails_and_nothing_is_lost_after() {
    let site = Site::new(&LINES).await;
    let begin = async || table_is_there(&site.store, false).await;
    outlives(&site, begin, async |()| table_is_there(&site.store, true).await).await;
}

#[tokio::test]
async fn memory_decides_while_the_database_is_locked_and_nothing_is_lost_after() {
    let site = Site::new(&LINES).await;
    // Another program's transaction that writes, and doesn't end.
    let postgres = postgres_address(&site.store);
    let locks_rows = postgres.is_some();
    let file = || DatabaseUrl::Sqlite(site.folder.path().join("x.db"));
    let other = Store::open(&postgres.map_or_else(file, DatabaseUrl::Postgres)).await.unwrap();
    let begin = async || {
        let mut tx = other.begin().await.unwrap();
        if locks_rows {
            let lock = "LOCK TABLE rate_limit_usage IN EXCLUSIVE MODE";
            sqlx::query(lock).execute(&mut *tx).await.unwrap();
        }
        tx
    };
    outlives(&site, begin, async |tx: Tx| tx.rollback().await.unwrap()).await;
}

/// Calls until all is full while the database doesn't take what they count; then it does, and the server starts again.
async fn outlives<T>(site: &Site, begin: impl AsyncFnOnce() -> T, end: impl AsyncFnOnce(T)) {
    let ledger = Ledger::start(site.store.clone(), site.clock.clone());
    let wiring = |sink: Arc<dyn UsageSink>| Wiring {
        store: site.store.clone(),
        clock: site.clock.clone(),
        secret: secret(),
        config: PoolConfig::default(),
        upstream: site.provider.clone(),
        sink,
        shared: None,
        replica: "this".into(),
    };
    let pool = Pool::open(wiring(Arc::new(ledger.clone()))).await.unwrap();
    let counts = |pool: &Pool| -> Vec<_> {
        pool.status()
            .into_iter()
            .map(|row| (row.key_id, row.rpm, row.rpd, row.tpd, row.provider_day))
            .collect()
    };
    let trouble = begin().await;
    for _ in 0..6 {
        pool.call(&site.admission, "default", request(20)).await.unwrap();
    }
    let full = pool.call(&site.admission, "default", request(20)).await.err().unwrap();
    assert!(matches!(full, CallError::NoRoom { .. }), "{full:?}");
    ledger.record_window_rows(site.admission.meter().take_window_row().into_iter().collect());
    let before = counts(&pool);
    assert!(!ledger.close(Duration::from_millis(300)).await, "written, though the database took nothing");
    end(trouble).await;
    assert!(ledger.close(Duration::from_secs(30)).await);
    let again = Pool::open(wiring(site.rows.clone())).await.unwrap();
    assert_eq!(counts(&again), before);
}

#[tokio::test]
async fn a_wrong_secret_key_is_one_clear_sentence_and_loses_nothing() {
    let site = Site::new(&[Line("alpha", &["main"], "m", "default", 1, NONE)]).await;
    let before = dump(&site.store).await;
    let wiring = |secret| Wiring {
        store: site.store.clone(),
        clock: site.clock.clone(),
        secret,
        config: PoolConfig::default(),
        upstream: site.provider.clone(),
        sink: site.rows.clone(),
        shared: None,
        replica: "this".into(),
    };
    let other = SecretKey::from_base64("AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=").unwrap();
    let said = Pool::open(wiring(other)).await.err().unwrap();
    for part in ["\"main\"", "\"alpha\"", "another secret key", "TOLLKEEPER_SECRET_KEY"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains('\n') && !said.contains("sk-main") && !said.contains("v1:"), "{said}");
    assert_eq!(dump(&site.store).await, before);
    let pool = Pool::open(wiring(secret())).await.unwrap();
    pool.call(&site.admission, "default", request(20)).await.unwrap();
    assert_eq!(site.keys(), ["sk-main"]);
}
