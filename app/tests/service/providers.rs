//! Provider keys: sealed under one secret key, and told to nobody but their provider.

use std::process::Output;

use serde_json::json;

use crate::scripted::answer;
use crate::support::{Answer, Reading, Setup, stderr, until, words};

const BETA: &str = "[[platform]]\nid = \"beta\"\nbase_url = \"UPSTREAM\"\n[[platform.key]]\nlabel = \"main\"\nsecret = \"sk-beta-secret\"\n\
                    [[platform.model]]\nid = \"m\"\nalias = \"small\"\nrpm = 20\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_key_stops_the_start_with_one_sentence_and_loses_nothing() {
    let mut site = Setup::new().directory(BETA).start().await;
    let eve = site.key("eve@example.com", "acme");
    let ask = json!({ "model": "small" });
    assert_eq!(eve.send(eve.completion(&ask)).await.status, 200);
    site.kill();
    let before = site.tables(&[]).await;

    let other = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
    let refused: Output = site.cli_with(&[("TOLLKEEPER_SECRET_KEY", other)], &["serve"]);
    assert!(!refused.status.success());
    let said = stderr(&refused);
    let sentence: Vec<&str> = said.lines().filter(|line| line.contains("TOLLKEEPER_SECRET_KEY")).collect();
    assert_eq!(sentence.len(), 1, "{said}");
    for named in ["beta", "main"] {
        assert!(sentence[0].contains(named), "{said}");
    }
    assert!(!said.contains("sk-beta-secret") && !said.contains(other), "{said}");
    assert_eq!(site.tables(&[]).await, before);

    site.boot();
    let eve = site.key("eve@example.com", "acme");
    let asked = eve.send(eve.completion(&ask)).await;
    assert_eq!(asked.status, 200, "{}", asked.text);
    let sent = site.upstream.requests().pop().unwrap();
    assert_eq!(sent.header("authorization"), Some("Bearer sk-beta-secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_key_is_told_to_its_provider_alone() {
    const FIRST: &str = "sk-first-plain-text";
    const SECOND: &str = "sk-second-plain-text";
    let mut site = Setup::new().env("RUST_LOG", "trace").start().await;
    let root = site.sign_in("root@example.com").await;
    let mut told: Vec<Answer> = Vec::new();
    let here = "/api/admin/providers";
    let platform = json!({ "id": "gamma", "base_url": site.upstream.base_url() });
    told.push(root.post(&format!("{here}/platforms"), &platform).await);
    let model = json!({ "platform": "gamma", "model": "m", "alias": "small", "rpm": 20 });
    told.push(root.post(&format!("{here}/models"), &model).await);
    let key = json!({ "platform": "gamma", "label": "main", "secret": FIRST });
    let added = root.post(&format!("{here}/keys"), &key).await;
    let id = added.json()["id"].as_str().unwrap().to_owned();
    // Refused, so that it could be in what is said of it.
    let twice = root.post(&format!("{here}/keys"), &key).await;
    assert_eq!(twice.status, 409);
    let at = format!("{here}/keys/{id}");
    let malformed = root.send(root.with_json("PATCH", &at, &json!({ "secret": format!("{FIRST} x") }))).await;
    assert_eq!(malformed.status, 422);
    let rotated = root.send(root.with_json("PATCH", &at, &json!({ "secret": SECOND }))).await;
    assert_eq!(rotated.status, 204, "{}", rotated.text);
    told.extend([added, twice, malformed, rotated]);

    let candidate = json!({ "platform": "gamma", "model": "m", "key_id": id });
    let echo = json!({ "error": { "message": format!("the key {SECOND} is odd") } }).to_string();
    for status in [400, 401] {
        site.upstream.next(answer(status, &["Content-Type: application/json"], &echo));
        told.push(root.post(&format!("{here}/test"), &candidate).await);
    }
    site.upstream.next(words("OK", 9, 2));
    let works = root.post(&format!("{here}/test"), &candidate).await;
    assert_eq!(works.json()["ok"], true, "{}", works.text);
    told.push(works);
    let eve = site.key("eve@example.com", "acme");
    site.upstream.next(answer(400, &["Content-Type: application/json"], &echo));
    told.push(eve.send(eve.completion(&json!({ "model": "small" }))).await);

    for path in [
        here,
        "/api/admin/audit",
        "/metrics",
        "/settings/providers",
        &format!("/settings/providers?ask=rotate-key&key={id}"),
        "/settings/audit",
    ] {
        let read = root.get(path).await;
        assert_eq!(read.status, 200, "{path}");
        told.push(read);
    }
    let mut live = Reading::begin(root.request("GET", "/api/live/providers")).await;
    live.up_to("\"gamma\"").await;

    let secrets = [FIRST, SECOND];
    let clean = |text: &str| secrets.iter().all(|secret| !text.contains(secret));
    for answer in &told {
        assert!(clean(&answer.text) && clean(&format!("{:?}", answer.headers)), "{}", answer.text);
    }
    assert!(clean(&live.text));
    let sent: Vec<String> = site.upstream.requests().into_iter().map(|request| request.head).collect();
    assert!(sent.iter().any(|head| head.contains(SECOND)), "it reached the provider");
    let database = site.database_files();
    drop(live);
    site.terminate();
    let (_, said) = site.ended().await;
    assert!(clean(&said) && said.contains("platform-key.change"), "in the log");
    assert!(clean(&String::from_utf8_lossy(&database)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_nobody_could_serve_is_in_the_metric_the_log_and_on_the_page() {
    let site = Setup::new().directory(BETA).start().await;
    let (root, eve) = (site.sign_in("root@example.com").await, site.key("eve@example.com", "acme"));
    site.upstream.next(answer(503, &[], "{}"));
    assert_eq!(eve.send(eve.completion(&json!({ "model": "small" }))).await.status, 502);
    let metrics = root.get("/metrics").await.text;
    let line = "tollkeeper_provider_unserved_total{alias=\"small\",reason=\"failed\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    assert!(root.get("/settings/providers").await.text.contains("could not be served"));
    until("the log says so", async || {
        let line = "no model provider served the request";
        site.said().lines().any(|said| said.contains("WARN") && said.contains(line)).then_some(())
    })
    .await;
}
