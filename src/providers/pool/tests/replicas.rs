//! Several replicas over one database: what one uses, the others count.

use super::*;
use crate::ledger::Ledger;
use crate::replicas::new_id;

/// A pool of another process over the same database, with a ledger of its own.
async fn replica(site: &Site) -> (Pool, Ledger) {
    let clock: crate::clock::SharedClock = site.clock.clone();
    let ledger = Ledger::start(site.store.clone(), clock);
    let pool = Pool::open(Wiring {
        store: site.store.clone(),
        clock: site.clock.clone(),
        secret: secret(),
        config: site.config.clone(),
        upstream: site.provider.clone(),
        sink: Arc::new(ledger.clone()),
        shared: None,
        replica: ledger.replica().clone(),
    })
    .await
    .unwrap();
    (pool, ledger)
}

fn counts(pool: &Pool) -> Vec<(u64, u64, u64, u64, u64)> {
    let row = |r: ProviderRow| (r.rpm.used, r.rpd.used, r.tpm.used, r.tpd.used, r.provider_day.used);
    pool.status().into_iter().map(row).collect()
}

/// Within the second that is promised.
async fn within_a_second(what: impl Fn() -> bool) -> bool {
    let holds = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(1), holds).await.is_ok()
}

#[tokio::test]
async fn what_one_replica_uses_the_others_count_within_a_second() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(4))]).await;
    let stop = CancellationToken::new();
    let [(a, _ledger_a), (b, _ledger_b), (c, _ledger_c)] =
        [replica(&site).await, replica(&site).await, replica(&site).await];
    let running: Vec<_> =
        [&a, &b, &c].into_iter().map(|pool| tokio::spawn(pool.clone().run(stop.clone()))).collect();
    site.script("sk-a1", Script::Answer(20, 10));
    let admission = Admission::for_tests();
    for (n, pool) in [&a, &b, &a, &c].into_iter().enumerate() {
        pool.call(&admission, "default", request(20)).await.unwrap();
        let used = n as u64 + 1;
        assert!(
            within_a_second(|| [&a, &b, &c].iter().all(|pool| counts(pool)[0].0 == used)).await,
            "{used}: {:?}",
            [&a, &b, &c].map(counts)
        );
    }
    for pool in [&a, &b, &c] {
        assert!(matches!(pool.call(&admission, "default", request(20)).await, Err(CallError::NoRoom { .. })));
    }
    stop.cancel();
    for task in running {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_cooldown_is_cleared_on_every_replica() {
    let site = Site::new(&[
        Line("alpha", &["a1"], "m", "default", 1, NONE),
        Line("alpha", &["a1"], "n", "other", 1, NONE),
    ])
    .await;
    let [(a, _ledger_a), (b, _ledger_b)] = [replica(&site).await, replica(&site).await];
    let (m, n) = (CandidateId::new("alpha", "m", "alpha-a1"), CandidateId::new("alpha", "n", "alpha-a1"));
    let cools = |pool: &Pool, id| pool.quotas().status(id).unwrap().cooldown.is_some();
    let missing = Failure::Status {
        status: 404,
        retry_after_ms: None,
        reset_ms: None,
        message: None,
        code: None,
        param: None,
    };
    site.script("sk-a1", Script::Fail(missing));
    let admission = Admission::for_tests();
    for asked in ["default", "other"] {
        assert!(b.call(&admission, asked, request(20)).await.is_err());
    }
    assert!(cools(&b, &m) && cools(&b, &n) && !cools(&a, &m));
    let actor = crate::audit::Actor::System;
    assert_eq!(a.clear_cooldown(&actor, &m).await, Ok(None), "nobody else runs");
    let mut tx = site.store.begin().await.unwrap();
    sqlx::query(
        "INSERT INTO replicas (id, started_at_ms, seen_at_ms, beat) VALUES ('a', 0, 0, 1), ('b', 0, 0, 1)",
    )
    .execute(&mut *tx)
    .await
    .unwrap();
    tx.commit().await.unwrap();
    for _ in 0..2 {
        assert!(a.clear_cooldown(&actor, &m).await.unwrap().is_some());
        b.refresh().await.unwrap();
        assert!(!cools(&b, &m) && cools(&b, &n));
        assert!(b.call(&admission, "default", request(20)).await.is_err());
        assert!(cools(&b, &m));
    }
}

#[tokio::test]
async fn each_call_counts_once_across_restarts_and_outages() {
    let site = Site::new(&[
        Line("alpha", &["a1", "a2"], "m", "default", 1, NONE),
        Line("beta", &["b"], "n", "other", 1, NONE),
    ])
    .await;
    let mut random = rand::rngs::StdRng::seed_from_u64(5);
    let mut pools = vec![replica(&site).await, replica(&site).await];
    let mut made = 0;
    for round in 0..25 {
        for _ in 0..random.random_range(1..20) {
            let (pool, ledger) = &pools[random.random_range(0..pools.len())];
            let id = CandidateId::new("alpha", "m", "alpha-a1");
            pool.quotas().record_request(&id);
            pool.quotas().record_tokens(&id, 3);
            made += 1;
            // Some rows are written at once, others with what comes later.
            if random.random_range(0..3) == 0 {
                ledger.flush().await;
            }
            if random.random_range(0..4) == 0 {
                pool.count_others().await.unwrap();
            }
        }
        // One starts beside the others, as in a rolling update, and one goes.
        let (_, going) = pools.remove(0);
        if round % 2 == 0 {
            pools.push(replica(&site).await);
            going.flush().await;
        } else {
            going.flush().await;
            pools.push(replica(&site).await);
        }
        for (_, ledger) in &pools {
            ledger.flush().await;
        }
        for (pool, _) in &pools {
            pool.count_others().await.unwrap();
            pool.count_others().await.unwrap();
            assert_eq!(counts(pool)[0], (made, made, 3 * made, 3 * made, made), "round {round}");
        }
    }
}

#[tokio::test]
async fn rows_of_a_replica_with_another_clock_count_from_now() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    let id = CandidateId::new("alpha", "m", "alpha-a1");
    for off_by_ms in [-3_600_000, 3_600_000] {
        let row = WindowRow {
            platform: id.platform.clone(),
            model_id: id.model.clone(),
            key_id: id.key.clone(),
            kind: WindowKind::Request,
            tokens: 0,
            created_at: site.clock.now().plus_ms(off_by_ms),
        };
        let mut tx = site.store.begin().await.unwrap();
        window_row::insert(&mut tx, &new_id(), 1, [&row]).await.unwrap();
        tx.commit().await.unwrap();
    }
    site.pool.count_others().await.unwrap();
    assert_eq!(site.row("m").rpm.used, 2);
    site.clock.advance_ms(60_001);
    assert_eq!(site.row("m").rpm.used, 0);
}
