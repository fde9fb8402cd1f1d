//! What a call leaves behind: usage, counts, nothing held.

use super::*;

#[tokio::test]
async fn a_stream_is_entered_once_however_it_ends() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    let begin = async || match site.ask("default").await.unwrap().answer {
        Answer::Stream(events) => events,
        Answer::Whole { .. } => panic!("not a stream"),
    };
    site.script("sk-a1", Script::Stream);
    let mut events = begin().await;
    assert_eq!((site.row("m").rpm.used, site.row("m").in_flight), (1, 1));
    assert!(site.admission.meter().take().is_empty());
    while let Some(event) = events.next().await {
        if matches!(event, Event::End(_)) {
            assert_eq!(site.admission.meter().total().total(), 30, "entered before the end is seen");
        }
    }
    drop(events);
    assert_eq!(site.admission.meter().take(), [("m".to_owned(), step(20, 10))]);
    assert_eq!(site.admission.meter().take_window_rows().len(), 2);

    site.script("sk-a1", Script::Cut);
    assert_eq!(begin().await.count().await, 2);
    assert_eq!(site.admission.meter().total().total(), 6);
    assert_eq!(site.keys().len(), 2, "a stream that has begun is not begun again");
    site.admission.meter().take();

    site.script("sk-a1", Script::Stream);
    let mut events = begin().await;
    events.next().await;
    drop(events);
    let [(_, dropped)] = site.admission.meter().take().try_into().unwrap();
    assert_eq!(dropped.estimated, Usage { input_tokens: 7, output_tokens: 1 });
    let row = site.row("m");
    assert_eq!((row.rpm.used, row.tpm.used, row.in_flight), (3, 30 + 6 + 8, 0));
}

#[tokio::test]
async fn leases_are_given_up_when_a_call_is_dropped_or_panics() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(1))]).await;
    let permits = Arc::new(Semaphore::new(0));
    site.script("sk-a1", Script::Wait(permits.clone()));
    {
        let mut call = std::pin::pin!(site.ask("default"));
        assert!(futures::poll!(&mut call).is_pending());
        assert_eq!(site.row("m").in_flight, 1);
        assert!(!site.pool.quotas().can_make_request(&CandidateId::new("alpha", "m", "alpha-a1")));
        let error = site.ask("default").await.err().unwrap();
        assert!(matches!(error, CallError::NoRoom { retry_after_ms: 1_000, .. }), "{error:?}");
    }
    assert_eq!(site.row("m").in_flight, 0);
    let [(model, dropped)] = site.admission.meter().take().try_into().unwrap();
    assert!(model == "m" && dropped.estimated == dropped.usage, "the provider will have worked on it");
    assert!(dropped.usage.input_tokens > 0 && dropped.usage.output_tokens == 0, "{dropped:?}");
    site.script("sk-a1", Script::Panic);
    assert!(AssertUnwindSafe(site.ask("default")).catch_unwind().await.is_err());
    let row = site.row("m");
    assert_eq!((row.in_flight, row.rpm.used, row.cooldown_until), (0, 0, None));
    site.script("sk-a1", Script::Answer(1, 1));
    site.ask("default").await.unwrap();
}

#[tokio::test]
async fn counts_after_a_restart_equal_those_before() {
    let lines = [
        Line("alpha", &["a1", "a2"], "m", "default", 1, rpm(40)),
        Line("beta", &["b"], "n", "default", 2, NONE),
    ];
    let mut site = Site::new(&lines).await;
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    for round in 0..30 {
        for _ in 0..random.random_range(1..60) {
            let script = match random.random_range(0..6) {
                0 => status(500, None),
                1 => status(429, Some(10)),
                _ => Script::Answer(random.random_range(0..500), 3),
            };
            site.script("sk-a1", script);
            // Some fail; what counts is that both processes count the same.
            let _ = site.ask("default").await;
            site.clock.advance_ms(random.random_range(0..900));
        }
        let counts = |pool: &Pool| -> Vec<_> {
            let row = |r: ProviderRow| (r.model, r.key_id, r.rpm, r.rpd, r.tpm, r.tpd, r.provider_day);
            pool.status().into_iter().map(row).collect()
        };
        let before = counts(&site.pool);
        site.restart().await;
        assert_eq!(before, counts(&site.pool), "round {round}");
        site.clock.advance_ms(random.random_range(0..9_000_000));
    }
}

#[tokio::test]
async fn what_elsewhere_was_used_counts_and_what_is_old_goes() {
    let mut site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(2))]).await;
    let id = CandidateId::new("alpha", "m", "alpha-a1");
    let quotas = site.pool.quotas().clone();
    quotas.record_request(&id);
    quotas.record_tokens(&id, 40);
    assert!(quotas.can_make_request(&id) && quotas.can_use_tokens(&id, 1_000_000));
    quotas.record_request(&id);
    assert!(!quotas.can_make_request(&id));
    let kinds: Vec<_> = site.rows.0.lock().iter().map(|row| (row.kind, row.tokens)).collect();
    assert_eq!(kinds, [(WindowKind::Request, 0), (WindowKind::Tokens, 40), (WindowKind::Request, 0)]);
    site.restart().await;
    let begun = site.clock.now();
    let old = |n: i64| WindowRow {
        platform: "alpha".into(),
        model_id: "m".into(),
        key_id: "alpha-a1".into(),
        kind: WindowKind::Request,
        tokens: 0,
        created_at: begun.plus_ms(-86_400_000 - 200_000 - n),
    };
    let mut tx = site.store.begin().await.unwrap();
    window_row::insert(&mut tx, &(0..1_200).map(old).collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
    let mut steps = 0;
    while history::prune(&site.store, begun).await.unwrap() {
        steps += 1;
    }
    assert_eq!(steps, 2, "500 at a time");
    let left: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM rate_limit_usage")
        .fetch_one(site.store.read())
        .await
        .unwrap();
    assert_eq!(left, 3);
    assert_eq!(site.row("m").provider_day.used, 2);
}
