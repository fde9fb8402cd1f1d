//! What a failure leads to.

use super::*;
use crate::audit::Actor;
use crate::model::Rejection;

#[tokio::test]
async fn a_429_moves_on_and_is_left_alone_for_as_long_as_it_says() {
    let lines =
        [Line("alpha", &["a1"], "m", "default", 1, NONE), Line("beta", &["b1"], "n", "default", 2, NONE)];
    let site = Site::new(&lines).await;
    site.script("sk-a1", status(429, Some(3_000)));
    site.ask("default").await.unwrap();
    assert_eq!(site.row("m").cooldown_until, Some(site.clock.now().plus_ms(3_000)));
    assert_eq!(site.row("m").rpm.used, 0, "a 429 is no request");
    site.script("sk-a1", Script::Answer(1, 1));
    site.clock.advance_ms(2_999);
    site.ask("default").await.unwrap();
    site.clock.advance_ms(1);
    site.ask("default").await.unwrap();
    assert_eq!(site.keys(), ["sk-a1", "sk-b1", "sk-b1", "sk-a1"]);
}

#[tokio::test]
async fn all_told_to_wait_is_want_of_room_with_the_soonest_recovery() {
    let site = Site::new(&[Line("alpha", &["a1", "a2"], "m", "default", 1, NONE)]).await;
    site.script("sk-a1", status(429, Some(30_000)));
    site.script("sk-a2", status(429, Some(9_500)));
    for tries in [2, 2] {
        let error = site.ask("default").await.err().unwrap();
        assert!(matches!(error, CallError::NoRoom { retry_after_ms: 9_500, .. }), "{error:?}");
        assert_eq!(site.keys().len(), tries);
    }
}

#[tokio::test]
async fn what_no_provider_stated_does_not_bench_the_last_candidate() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    for script in [status(500, None), status(429, None), status(404, None), Script::Fail(Failure::Timeout)] {
        site.script("sk-a1", script);
        let before = site.keys().len();
        assert!(matches!(site.ask("default").await, Err(CallError::AllFailed { .. })));
        assert!(matches!(site.ask("default").await, Err(CallError::AllFailed { .. })));
        assert_eq!(site.keys().len(), before + 2);
    }
    assert!(site.admission.meter().take().is_empty(), "a failed call used something");
    site.script("sk-a1", Script::Answer(1, 1));
    site.ask("default").await.unwrap();
    assert_eq!(site.row("m").cooldown_until, None, "a success forgets");
}

#[tokio::test]
async fn a_5xx_leaves_the_candidate_alone_while_another_serves() {
    let lines =
        [Line("alpha", &["a1"], "m", "default", 1, NONE), Line("beta", &["b1"], "n", "default", 2, NONE)];
    let site = Site::new(&lines).await;
    site.script("sk-a1", status(503, None));
    site.ask("default").await.unwrap();
    site.ask("default").await.unwrap();
    assert_eq!(site.keys(), ["sk-a1", "sk-b1", "sk-b1"]);
    assert_eq!(site.row("m").rpm.used, 1, "an answer of 503 counts as a request");
    site.clock.advance_ms(10_000);
    site.ask("default").await.unwrap();
    assert_eq!(site.row("m").cooldown_until, Some(site.clock.now().plus_ms(20_000)), "the ladder doubles");
    site.script("sk-b1", Script::Fail(Failure::Connection));
    let CallError::AllFailed { message } = site.ask("default").await.err().unwrap() else { panic!() };
    assert!(message.contains("beta/n could not be reached"), "{message}");
}

#[tokio::test]
async fn a_400_is_the_callers() {
    let lines =
        [Line("alpha", &["a1"], "m", "default", 1, NONE), Line("beta", &["b1"], "n", "default", 2, NONE)];
    let site = Site::new(&lines).await;
    let message = Some("temperature must be at most 2".to_owned());
    let failure = Failure::Status {
        status: 400,
        retry_after_ms: None,
        reset_ms: None,
        message,
        code: None,
        param: None,
    };
    site.script("sk-a1", Script::Fail(failure));
    let CallError::Rejected(Rejection { message, .. }) = site.ask("default").await.err().unwrap() else {
        panic!()
    };
    assert!(message.contains("temperature must be at most 2"), "{message}");
    assert_eq!((site.keys().len(), site.row("m").cooldown_until), (1, None));
    assert!(site.admission.meter().take().is_empty());
}

#[tokio::test]
async fn a_rejected_key_rests_with_all_its_models_until_it_is_changed_or_cleared() {
    let lines = |label: &'static [&'static str]| {
        [
            Line("alpha", label, "m", "default", 1, rpm(9)),
            Line("alpha", label, "s", "small", 1, NONE),
            Line("beta", &["b1"], "n", "default", 2, NONE),
            Line("beta", &["b1"], "t", "small", 2, NONE),
        ]
    };
    let site = Site::new(&lines(&["a1"])).await;
    site.script("sk-a1", status(401, None));
    site.ask("default").await.unwrap();
    site.clock.advance_ms(30 * 86_400_000);
    site.ask("small").await.unwrap();
    assert_eq!(site.keys(), ["sk-a1", "sk-b1", "sk-b1"]);
    assert_eq!(site.row("s").cooldown_until, Some(UNTIL_CHANGED));
    apply(&site.store, &lines(&["a1"])).await;
    site.pool.reload().await.unwrap();
    assert!(site.row("m").cooldown_until.is_some(), "sealed anew, but the same key");
    apply(&site.store, &lines(&["a1~new"])).await;
    site.pool.reload().await.unwrap();
    assert_eq!(site.row("m").cooldown_until, None);
    site.script("sk-a1~new", status(401, None));
    site.ask("default").await.unwrap();
    let first = CandidateId::new("alpha", "m", "alpha-a1");
    assert!(site.pool.clear_cooldown(&Actor::System, &first).await.unwrap().is_some());
    assert_eq!((site.row("m").cooldown_until, site.row("s").cooldown_until), (None, None));
    assert_eq!(site.pool.clear_cooldown(&Actor::System, &first).await, Ok(None));
}
