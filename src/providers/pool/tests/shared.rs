//! Where other replicas use the same keys.

use super::*;
use crate::providers::{LeaseAsk, LeaseEvent, LeaseNumber, SharedLeases, Taken};

/// Other replicas' calls fill one platform; what is told of the others' is kept.
#[derive(Default)]
struct Elsewhere {
    platform: &'static str,
    asked: Mutex<Vec<LeaseAsk>>,
    told: Mutex<Vec<LeaseEvent>>,
}

#[async_trait]
impl SharedLeases for Elsewhere {
    async fn take(&self, ask: LeaseAsk) -> Taken {
        let is_full = *ask.id.platform == *self.platform;
        self.asked.lock().push(ask);
        if is_full { Taken::No } else { Taken::Yes(LeaseNumber(1)) }
    }

    fn tell(&self, _: LeaseNumber, event: LeaseEvent) {
        self.told.lock().push(event);
    }
}

async fn open(site: &Site, platform: &'static str) -> (Pool, Arc<Elsewhere>) {
    let elsewhere = Arc::new(Elsewhere { platform, ..Elsewhere::default() });
    let wiring = Wiring {
        store: site.store.clone(),
        clock: site.clock.clone(),
        secret: secret(),
        config: site.config.clone(),
        upstream: site.provider.clone(),
        sink: site.rows.clone(),
        shared: Some(elsewhere.clone()),
        replica: "this".into(),
    };
    (Pool::open(wiring).await.unwrap(), elsewhere)
}

#[tokio::test]
async fn a_candidate_that_others_fill_is_passed_over() {
    let lines =
        [Line("alpha", &["a1"], "m", "default", 1, rpm(5)), Line("beta", &["b1"], "n", "default", 2, rpm(5))];
    let site = Site::new(&lines).await;
    let (pool, elsewhere) = open(&site, "alpha").await;
    pool.call(&site.admission, "default", request(20)).await.unwrap();
    assert_eq!(site.keys(), ["sk-b1"]);
    let settled = LeaseEvent::Settled { tokens: 30 };
    assert_eq!(*elsewhere.told.lock(), [LeaseEvent::Answered, settled, LeaseEvent::Ended]);
    let asked = elsewhere.asked.lock();
    assert_eq!(asked[1].tokens, 20);
    assert!(asked[1].gauges.iter().all(|gauge| gauge.in_flight == 0), "without the call itself");
    let rows = pool.status();
    assert_eq!((rows[0].in_flight, rows[0].rpm.used), (0, 0), "the place by its own counts is given up");
}

#[tokio::test]
async fn where_others_fill_all_it_is_want_of_room() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(5))]).await;
    let (pool, _) = open(&site, "alpha").await;
    let error = pool.call(&site.admission, "default", request(20)).await.err().unwrap();
    let CallError::NoRoom { message, retry_after_ms } = error else { panic!("{error:?}") };
    assert!(message.contains("alpha/m is in use up to its limits"), "{message}");
    assert_eq!((retry_after_ms, site.keys().len()), (1_000, 0));
}

#[tokio::test]
async fn a_failed_call_counts_there_as_it_does_here() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(5))]).await;
    let (pool, elsewhere) = open(&site, "none").await;
    for (script, told) in [
        (status(429, None), vec![LeaseEvent::Ended]),
        (status(500, None), vec![LeaseEvent::Answered, LeaseEvent::Ended]),
    ] {
        site.script("sk-a1", script);
        site.clock.advance_ms(120_000);
        assert!(pool.call(&site.admission, "default", request(20)).await.is_err());
        assert_eq!(std::mem::take(&mut *elsewhere.told.lock()), told);
    }
}
