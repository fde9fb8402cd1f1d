//! An answer that a client has received in full is in the ledger, whatever comes next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use futures::future::join_all;
use serde_json::json;
use tokio::sync::Notify;

use crate::scripted::Act;
use crate::support::{Reading, Setup, Site, last, streamed, until, words};

#[tokio::test(flavor = "multi_thread")]
async fn killed_right_after_an_answer_the_ledger_has_it() {
    let mut site = Site::start().await;
    for (n, route) in [(1, "generate"), (2, "whole"), (3, "streamed"), (4, "chat")] {
        let eve = site.key("eve@example.com", "acme");
        match route {
            "generate" => assert_eq!(eve.generate().await.status, 200),
            "whole" => assert_eq!(eve.complete().await.status, 200),
            "streamed" => {
                site.upstream.next(streamed("Hello", Vec::new(), last(7, 3)));
                let answer = eve.complete_streamed().await;
                assert_eq!(answer.events().last().unwrap().1, json!("[DONE]"));
            }
            _ => {
                site.upstream.next(streamed("Hello", Vec::new(), last(7, 3)));
                assert_eq!(eve.chat_streamed().await.events().last().unwrap().0, "done");
            }
        }
        site.kill();
        assert_eq!(site.totals("1").await, (7 * n, 3 * n, n), "after {route}");
        site.boot();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load_all_that_was_acknowledged_is_recorded() {
    let mut site = Setup::new().env("LLM_RATE_PER_MINUTE", "0").start().await;
    let eve = site.key("eve@example.com", "acme");
    let (acknowledged, stop) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (eve, acknowledged, stop) = (eve.clone(), acknowledged.clone(), stop.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match eve.try_send(eve.completion(&json!({}))).await {
                        Ok(answer) if answer.status == 200 => acknowledged.fetch_add(1, Ordering::SeqCst),
                        _ => break,
                    };
                }
            })
        })
        .collect();
    until("a hundred answers", async || (acknowledged.load(Ordering::SeqCst) >= 100).then_some(())).await;
    site.kill();
    stop.store(true, Ordering::Relaxed);
    for caller in join_all(callers).await {
        caller.unwrap();
    }
    let (input, output, requests) = site.totals("1").await;
    let acknowledged = acknowledged.load(Ordering::SeqCst);
    assert!(requests >= acknowledged, "{requests} recorded of {acknowledged} acknowledged");
    assert!(requests <= i64::try_from(site.upstream.requests().len()).unwrap());
    assert_eq!((input, output), (7 * requests, 3 * requests));
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_to_stop_it_ends_the_answer_that_it_has_begun() {
    let mut site = Site::start().await;
    let gate = Arc::new(Notify::new());
    site.upstream.next(streamed("Hel", vec![Act::Wait(gate.clone())], last(11, 5)));
    let eve = site.key("eve@example.com", "acme");
    let mut answer = Reading::begin(eve.completion(&json!({ "stream": true }))).await;
    answer.up_to("Hel").await;
    site.terminate();
    until("it takes no more", async || eve.try_send(eve.request("GET", "/healthz")).await.err()).await;
    gate.notify_one();
    let events = answer.read_on().await;
    assert_eq!(events.last().unwrap().1, json!("[DONE]"), "{events:?}");
    let (status, said) = site.ended().await;
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(site.totals("route = 'openai'").await, (11, 5, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_to_stop_it_still_charges_a_caller_who_left() {
    let mut site = Site::start().await;
    let gate = Arc::new(Notify::new());
    site.upstream.next(streamed("Hel", vec![Act::Wait(gate.clone())], last(11, 5)));
    let eve = site.key("eve@example.com", "acme");
    let mut answer = Reading::begin(eve.completion(&json!({ "stream": true }))).await;
    answer.up_to("Hel").await;
    drop(answer);
    site.terminate();
    until("it takes no more", async || eve.try_send(eve.request("GET", "/healthz")).await.err()).await;
    gate.notify_one();
    let (status, said) = site.ended().await;
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(site.totals("1").await, (11, 5, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_changes_nothing_that_is_told() {
    let mut site = Setup::new()
        .directory("[[platform]]\nid = \"beta\"\nbase_url = \"UPSTREAM\"\n[[platform.key]]\nlabel = \"main\"\nsecret = \"sk-beta\"\n\
                    [[platform.model]]\nid = \"m\"\nalias = \"default\"\nrpd = 100\ntpd = 10000\n")
        .upstream(words("Hello", 20, 4))
        .start()
        .await;
    let eve = site.key("eve@example.com", "acme");
    for _ in 0..3 {
        assert_eq!(eve.complete().await.status, 200);
    }
    assert!(site.cli(&["limits", "set", "acme", "--rate", "2"]).status.success());
    assert_eq!(eve.complete().await.status, 429);
    let told = async |site: &Site| {
        let root = site.sign_in("root@example.com").await;
        let day = |mut row: serde_json::Value| {
            // The minute goes on while the server is away.
            row.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "rpm" | "tpm"));
            row
        };
        let providers = root.get("/api/admin/providers").await.json();
        let providers: Vec<_> = providers.as_array().unwrap().iter().cloned().map(day).collect();
        (root.get("/api/admin/workspaces").await.json(), providers)
    };
    until("the refusal is written", async || {
        (site.number("SELECT COALESCE(SUM(refused), 0) FROM llm_refusals").await == 1).then_some(())
    })
    .await;
    let before = told(&site).await;
    assert_eq!(before.1[0]["rpd"], json!({ "used": 3, "limit": 100 }), "{:?}", before.1);
    site.kill();
    site.boot();
    let after = told(&site).await;
    assert_eq!(after, before);
}
