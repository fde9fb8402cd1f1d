//! The rate and the budget as callers meet them, many at once.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::scripted::{Act, answer};
use crate::support::{Answer, Client, Setup, Site, until, words};

fn with_status(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_at_once_on_a_full_bucket_of_20_admit_20() {
    let site = Site::start().await;
    let (key, other, session) = (
        site.key("eve@example.com", "acme"),
        site.key("eve@example.com", "acme"),
        site.sign_in("eve@example.com").await,
    );
    let begun = Instant::now();
    // One user, by two keys and a session: one bucket.
    let (a, b, c) = futures::join!(
        key.all(40, Client::complete),
        other.all(30, Client::complete),
        session.all(30, Client::generate),
    );
    let answers: Vec<_> = a.into_iter().chain(b).chain(c).collect();
    // One comes back every three seconds.
    let drained = usize::try_from(begun.elapsed().as_millis() / 3_000).unwrap();
    let admitted = with_status(&answers, 200);
    assert!((20..=20 + drained).contains(&admitted), "{admitted} admitted");
    assert_eq!(with_status(&answers, 429), 100 - admitted);
    assert_eq!(site.upstream.requests().len(), admitted);
    for refused in answers.iter().filter(|answer| answer.status == 429) {
        let sentence = refused.sentence();
        let seconds = refused.headers["retry-after"].to_str().unwrap();
        let begin = format!(
            "rate limit reached: 20 model requests per minute per user in this workspace; retry after {seconds}s (at "
        );
        assert!(sentence.starts_with(&begin), "{sentence}");
        assert_eq!(refused.limit("ratelimit", "rate", "r"), Some(0));
        assert_eq!(refused.limit("ratelimit-policy", "rate", "q"), Some(20));
    }
    let refused = i64::try_from(100 - admitted).unwrap();
    until("refusals are written", async || {
        let written = site.number("SELECT COALESCE(SUM(refused), 0) FROM llm_refusals WHERE kind = 'rate'");
        (written.await == refused).then_some(())
    })
    .await;
    // Another user has a bucket of their own.
    assert_eq!(site.key("bob@example.com", "acme").complete().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_nearly_spent_is_overshot_by_those_in_flight_at_most() {
    const CALLERS: i64 = 5;
    let site = Setup::new().rate(0).budget(1_000).upstream(words("Hello", 60, 40)).start().await;
    let eve = site.key("eve@example.com", "acme");
    let callers = (0..CALLERS).map(|_| async {
        loop {
            let answer = eve.complete().await;
            if answer.status != 200 {
                return answer;
            }
        }
    });
    let refusals = join_all(callers).await;
    let (input, output, requests) = site.totals("workspace_id = 'acme'").await;
    let used = input + output;
    assert_eq!(used, 100 * requests);
    assert!((1_000..1_000 + 100 * CALLERS).contains(&used), "{used} used");
    for refused in refusals {
        assert_eq!(refused.status, 429);
        assert_eq!(refused.headers["x-should-retry"], "false");
        assert_eq!(refused.json()["error"]["code"], "insufficient_quota");
        assert!(refused.sentence().contains(" of 1,000 tokens used in this workspace today; resets at "));
    }
    let sentence = site.key("bob@example.com", "acme").complete().await.sentence();
    assert!(
        sentence.starts_with(&format!("daily token budget reached: 1,{:03} of", used - 1_000)),
        "{sentence}"
    );
    // The other workspace has a budget of its own.
    assert_eq!(site.key("bob@example.com", "globex").complete().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn reserve_mode_never_overshoots() {
    let setup = Setup::new().env("LLM_BUDGET_MODE", "reserve").rate(0).budget(1_000);
    let site = setup.upstream(words("Hello", 2, 50)).start().await;
    let eve = site.key("eve@example.com", "acme");
    let ask = || eve.send(eve.completion(&json!({ "max_tokens": 50 })));
    let answers = join_all((0..60).map(|_| ask())).await;
    let (input, output, requests) = site.totals("workspace_id = 'acme'").await;
    assert!(requests > 0 && input + output <= 1_000, "{input} + {output} used");
    assert_eq!(usize::try_from(requests).unwrap(), with_status(&answers, 200));
    assert_eq!(with_status(&answers, 200) + with_status(&answers, 429), 60);
    // What was held and not used is free again: one after the other they get closer.
    while ask().await.status == 200 {}
    let (input, output, _) = site.totals("workspace_id = 'acme'").await;
    assert!((900..=1_000).contains(&(input + output)), "{input} + {output} used");
}

#[tokio::test(flavor = "multi_thread")]
async fn reserve_mode_says_what_calls_in_flight_hold() {
    let gate = Arc::new(Notify::new());
    let held = [Act::Wait(gate.clone())].into_iter().chain(words("Hello", 2, 50)).collect();
    let site = Setup::new().env("LLM_BUDGET_MODE", "reserve").budget(1_000).upstream(held).start().await;
    let eve = site.key("eve@example.com", "acme");
    let first = tokio::spawn({
        let eve = eve.clone();
        async move { eve.send(eve.completion(&json!({ "max_tokens": 900 }))).await }
    });
    until("the first is under way", async || (!site.upstream.requests().is_empty()).then_some(())).await;
    let second = eve.send(eve.completion(&json!({ "max_tokens": 900 }))).await;
    assert_eq!(second.status, 429);
    let sentence = second.sentence();
    assert!(
        sentence.starts_with("daily token budget reached: 0 of 1,000 tokens used and 9")
            && sentence.contains(" reserved by calls in flight in this workspace today; retry after 5s (at "),
        "{sentence}"
    );
    gate.notify_one();
    assert_eq!(first.await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_the_next_request_sees() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    assert_eq!(eve.complete().await.limit("ratelimit-policy", "rate", "q"), Some(20));
    site.execute("INSERT INTO workspace_limits (workspace_id, rate_per_minute, daily_token_budget) VALUES ('acme', 1, 5)").await;
    let both = eve.complete().await;
    // Over both, the budget is named.
    assert_eq!((both.status, both.json()["error"]["code"].as_str()), (429, Some("insufficient_quota")));
    site.execute("UPDATE workspace_limits SET daily_token_budget = NULL").await;
    assert_eq!(eve.complete().await.json()["error"]["code"], "rate_limit_exceeded");
    site.execute("UPDATE workspace_limits SET rate_per_minute = 60").await;
    let answer = eve.complete().await;
    assert_eq!((answer.status, answer.limit("ratelimit", "rate", "r")), (200, Some(58)));
    site.execute("UPDATE llm_usage SET input_tokens = 2000000").await;
    assert_eq!(eve.complete().await.json()["error"]["code"], "insufficient_quota");
    site.execute("DELETE FROM llm_usage").await;
    assert_eq!(eve.complete().await.status, 200);
    site.execute("UPDATE workspace_limits SET rate_per_minute = 0, daily_token_budget = 0").await;
    let answer = eve.complete().await;
    assert_eq!(answer.status, 200);
    assert!(!answer.headers.contains_key("ratelimit") && !answer.headers.contains_key("ratelimit-policy"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_room_gives_the_rate_token_back_and_a_failure_does_not() {
    let site = Setup::new()
        .rate(3)
        .directory("[[platform]]\nid = \"beta\"\nbase_url = \"UPSTREAM\"\n[[platform.key]]\nlabel = \"main\"\nsecret = \"sk-beta\"\n\
                    [[platform.model]]\nid = \"m\"\nalias = \"default\"\n")
        .start()
        .await;
    let eve = site.key("eve@example.com", "acme");
    site.upstream.next(answer(429, &["Retry-After: 600"], "{}"));
    let first = eve.complete().await;
    assert_eq!(first.status, 503, "{}", first.text);
    for _ in 0..5 {
        let full = eve.complete().await;
        assert_eq!(full.status, 503, "{}", full.text);
        assert!(full.headers.contains_key("retry-after"));
    }
    assert_eq!(site.upstream.requests().len(), 1);
    assert_eq!(site.totals("1").await, (0, 0, 0));

    let site = Setup::new().rate(2).upstream(answer(500, &[], "{}")).start().await;
    let eve = site.key("eve@example.com", "acme");
    let failed = eve.complete().await;
    assert_eq!((failed.status, failed.limit("ratelimit", "rate", "r")), (502, Some(1)), "{}", failed.text);
    tokio::time::timeout(Duration::from_secs(5), async { while eve.complete().await.status != 429 {} })
        .await
        .expect("the second and third spend what is left");
}
