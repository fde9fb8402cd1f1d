//! Windows, caps and the choice among candidates.

use super::*;

#[tokio::test]
async fn priority_then_headroom_then_order() {
    let site = Site::new(&[
        Line("beta", &["b1"], "other-1", "default", 2, NONE),
        Line("alpha", &["a1", "a2"], "large-1", "default", 1, rpm(2)),
    ])
    .await;
    for _ in 0..6 {
        site.ask("default").await.unwrap();
    }
    assert_eq!(site.keys(), ["sk-a1", "sk-a2", "sk-a1", "sk-a2", "sk-b1", "sk-b1"]);
    site.clock.advance_ms(60_000);
    let reply = site.ask("default").await.unwrap();
    assert_eq!((reply.platform.as_str(), reply.model.as_str()), ("alpha", "large-1"));
}

#[tokio::test]
async fn tokens_are_held_by_estimate_and_settled_by_what_was_used() {
    let tokens = Limits { tpm: Some(1_000), ..NONE };
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, tokens)]).await;
    site.script("sk-a1", Script::Answer(900, 80));
    site.pool
        .call(&site.admission, "default", request(5_000))
        .await
        .expect("too large, but the window is empty");
    assert_eq!(site.row("m").tpm, QuotaRow { used: 980, limit: Some(1_000) });
    site.ask("default").await.expect("20 more fit exactly");
    let full = site.ask("default").await.err().unwrap();
    let CallError::NoRoom { message, retry_after_ms } = full else { panic!("{full:?}") };
    assert!(message.contains("alpha/m has 1,960 of 1,000 tokens per minute"), "{message}");
    assert_eq!(retry_after_ms, 60_000);
    site.clock.advance_ms(59_999);
    assert!(site.ask("default").await.is_err());
    site.clock.advance_ms(1);
    site.ask("default").await.unwrap();
}

#[tokio::test]
async fn the_cap_counts_all_models_of_a_key_until_midnight() {
    let config = PoolConfig { caps: HashMap::from([("ALPHA".into(), 3)]), ..PoolConfig::default() };
    let lines = [
        Line("alpha", &["a1"], "large", "default", 1, NONE),
        Line("alpha", &["a1"], "tiny", "small", 1, NONE),
    ];
    let site = Site::with(config, &lines).await;
    for model in ["default", "small", "alpha/tiny"] {
        site.ask(model).await.unwrap();
    }
    assert!(!site.pool.quotas().can_use_provider("alpha", "alpha-a1"));
    let CallError::NoRoom { message, retry_after_ms } = site.ask("small").await.err().unwrap() else {
        panic!()
    };
    assert!(message.contains("3 of 3 requests of its key today"), "{message}");
    assert_eq!(
        site.clock.now().plus_ms(i64::try_from(retry_after_ms).unwrap()),
        site.clock.now().day().end()
    );
    assert_eq!(site.row("large").provider_day, site.row("tiny").provider_day);
    site.clock.set(site.clock.now().day().end());
    site.ask("small").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bursts_never_exceed_a_keys_windows() {
    const TPM: u64 = 4_000;
    let limits = Limits { rpm: Some(20), tpm: Some(TPM), ..NONE };
    let site = Arc::new(Site::new(&[Line("alpha", &["a1", "a2"], "m", "default", 1, limits)]).await);
    for key in ["sk-a1", "sk-a2"] {
        site.script(key, Script::Busy(250));
    }
    let (mut random, mut asked, begun) = (rand::rngs::StdRng::seed_from_u64(11), 0, site.clock.now());
    let mut calls = tokio::task::JoinSet::new();
    while asked < 10_000 {
        for _ in 0..random.random_range(1..40) {
            let site = site.clone();
            calls
                .spawn(async move { site.pool.call(&site.admission, "default", request(250)).await.is_ok() });
            asked += 1;
        }
        site.clock.advance_ms(random.random_range(0..3_000));
        // Now and then all end; mostly calls of many bursts are in flight together.
        if random.random_bool(0.1) {
            while calls.join_next().await.is_some() {}
            site.clock.advance_ms(random.random_range(0..40_000));
        } else {
            tokio::task::yield_now().await;
        }
    }
    while calls.join_next().await.is_some() {}
    let arrivals = site.provider.arrivals.lock();
    for key in ["sk-a1", "sk-a2"] {
        let mut of_key: Vec<_> = arrivals.iter().filter(|a| a.key == key).map(|a| (a.at, a.tokens)).collect();
        of_key.sort();
        for (at, (from, _)) in of_key.iter().enumerate() {
            let within = of_key[at..].iter().take_while(|(then, _)| then.ms_since(*from) < 60_000);
            let (requests, tokens) = within.fold((0, 0), |(n, sum), (_, tokens)| (n + 1, sum + tokens));
            assert!(
                requests <= 20 && tokens <= TPM,
                "{key}: {requests} requests, {tokens} tokens from {from}"
            );
        }
        let minutes = site.clock.now().ms_since(begun) / 60_000;
        assert!(
            of_key.len() as u64 > minutes * 12,
            "{} calls in {minutes} minutes is hardly used",
            of_key.len()
        );
    }
    assert_eq!(site.pool.status().iter().map(|row| row.in_flight).sum::<u64>(), 0);
}

#[tokio::test]
async fn the_wait_it_names_is_exact() {
    let limits = Limits { rpm: Some(5), rpd: Some(60), tpm: Some(900), tpd: Some(9_000) };
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, limits)]).await;
    let (mut random, mut refused) = (rand::rngs::StdRng::seed_from_u64(3), 0);
    for _ in 0..600 {
        site.script("sk-a1", Script::Answer(random.random_range(0..300), 0));
        let estimate = random.random_range(1..1_000);
        let ask = async || site.pool.call(&site.admission, "default", request(estimate)).await;
        if let Err(CallError::NoRoom { retry_after_ms, .. }) = ask().await {
            refused += 1;
            let wait = i64::try_from(retry_after_ms).unwrap();
            site.clock.advance_ms(wait - 1);
            assert!(ask().await.is_err(), "named too late");
            site.clock.advance_ms(1);
            ask().await.expect("named too early");
        }
        site.clock.advance_ms(random.random_range(0..20_000));
    }
    assert!(refused > 100, "{refused}");
}
