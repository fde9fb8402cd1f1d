//! Everything that is refused is refused in OpenAI's shape.

use reqwest::Method;
use serde_json::{Value, json};

use crate::scripted::{Scripted, answer};
use crate::site::{Site, site, site_with_limits};

const WHOLE: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],
    "usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
const GOOD: &str = r#"{"model":"default","messages":[{"role":"user","content":"Hi"}]}"#;

async fn limited(rate: u64, budget: u64) -> (Site, Scripted) {
    let provider = Scripted::start(answer(200, &[], WHOLE)).await;
    (site_with_limits(&provider.base_url(), rate, budget).await, provider)
}

#[tokio::test]
async fn bad_requests_name_what_is_wrong_and_tell_the_limits() {
    let (site, provider) = limited(20, 2_000_000).await;
    let large = format!("{{\"model\":\"default\",\"messages\":[\"{}\"]}}", "x".repeat(10 << 20));
    for (body, status, param, code) in [
        (r#"{"model":"default","#, 400, Value::Null, Value::Null),
        ("", 400, Value::Null, Value::Null),
        (r#"{"messages":[1]}"#, 422, json!("model"), Value::Null),
        (r#"{"model":"default"}"#, 422, json!("messages"), Value::Null),
        (r#"{"model":"default","messages":[]}"#, 422, json!("messages"), Value::Null),
        (r#"{"model":"default","messages":"Hi"}"#, 422, json!("messages"), Value::Null),
        (r#"{"model":7,"messages":[1]}"#, 422, json!("model"), Value::Null),
        (r#"{"model":"default","messages":[1],"stream":"yes"}"#, 422, json!("stream"), Value::Null),
        (
            r#"{"model":"default","messages":[1],"stream":true,"stream_options":{"include_usage":1}}"#,
            422,
            json!("stream_options.include_usage"),
            Value::Null,
        ),
        (r#"{"model":"default","model":"x","messages":[1]}"#, 422, json!("model"), Value::Null),
        (r#"{"model":"gpt-x","messages":[1]}"#, 404, json!("model"), json!("model_not_found")),
        (&large, 413, Value::Null, Value::Null),
    ] {
        let got = site.complete(body).await;
        let shown = &body[..body.len().min(80)];
        assert_eq!((got.status, got.error("param"), got.error("code")), (status, param, code), "{shown}");
        assert_eq!(
            got.header("ratelimit"),
            Some(&*format!("\"rate\";r=20;t=0, {}", budget_of(got.header("ratelimit"))))
        );
        assert_eq!(got.header("x-ratelimit-remaining-requests"), Some("20"), "{shown}");
    }
    let bearer = format!("Bearer {}", site.key);
    let form = [("authorization", bearer.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let got = site.send(Method::POST, "/v1/chat/completions", &form, GOOD).await;
    assert_eq!((got.status, got.error("type")), (415, json!("invalid_request_error")));
    assert_eq!(provider.requests().len(), 0);
}

fn budget_of(header: Option<&str>) -> String {
    header.and_then(|text| text.split(", ").nth(1)).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_answer_tells_the_limits_as_openai_does() {
    let (site, _provider) = limited(20, 2_000_000).await;
    let got = site.complete(GOOD).await;
    assert_eq!(got.status, 200);
    for (name, value) in [
        ("x-ratelimit-limit-requests", "20"),
        ("x-ratelimit-remaining-requests", "19"),
        ("x-ratelimit-reset-requests", "3s"),
        ("x-ratelimit-limit-tokens", "2000000"),
        ("x-ratelimit-remaining-tokens", "2000000"),
        ("ratelimit-policy", "\"rate\";q=20;w=60, \"budget\";q=2000000;w=86400;qu=\"tokens\""),
    ] {
        assert_eq!(got.header(name), Some(value), "{name}");
    }
    assert!(got.header("x-ratelimit-reset-tokens").unwrap().ends_with('s'));
    let models = get(&site, "/v1/models").await;
    assert_eq!((models.status, models.header("x-ratelimit-remaining-tokens")), (200, Some("1999982")));
}

#[tokio::test]
async fn refusals_say_whether_to_come_back() {
    let (site, _provider) = limited(1, 0).await;
    assert_eq!(site.complete(GOOD).await.status, 200);
    let got = site.complete(GOOD).await;
    assert_eq!(
        (got.status, got.error("code"), got.error("type")),
        (429, json!("rate_limit_exceeded"), json!("requests"))
    );
    assert_eq!((got.header("retry-after"), got.header("x-should-retry")), (Some("60"), None));
    assert_eq!(got.header("x-ratelimit-remaining-requests"), Some("0"));

    let (site, _provider) = limited(0, 18).await;
    assert_eq!(site.complete(GOOD).await.status, 200);
    let got = site.complete(GOOD).await;
    assert_eq!((got.status, got.error("code")), (429, json!("insufficient_quota")));
    assert_eq!(
        (got.header("x-should-retry"), got.header("x-ratelimit-remaining-tokens")),
        (Some("false"), Some("0"))
    );
}

async fn get(site: &Site, path: &str) -> crate::site::Answer {
    site.send(Method::GET, path, &[("authorization", &format!("Bearer {}", site.key))], "").await
}

#[tokio::test]
async fn what_is_not_offered_is_said_so() {
    let (site, _provider) = limited(0, 0).await;
    let bearer = format!("Bearer {}", site.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    for path in [
        "/v1/images/generations",
        "/v1/responses/resp_1/cancel",
        "/v1/completions",
        "/v1/",
        "/v1",
        "/v1/chat/completions/",
        "/v1/%ff",
    ] {
        let got = site.send(Method::POST, path, &headers, GOOD).await;
        assert_eq!((got.status, got.error("code")), (404, json!("unknown_url")), "{path}");
    }
    let got = site.send(Method::POST, "/v1/images/generations", &headers, "{}").await;
    assert!(got.body.contains("/v1/chat/completions"), "{}", got.body);
    for (method, path) in [
        (Method::GET, "/v1/chat/completions"),
        (Method::DELETE, "/v1/models"),
        (Method::POST, "/v1/models/x"),
    ] {
        let got = site.send(method, path, &headers, "").await;
        assert_eq!((got.status, got.error("param")), (405, Value::Null), "{path}");
    }
    assert_eq!(site.send(Method::GET, "/v1/models", &[], "").await.error("code"), "invalid_api_key");
}

#[tokio::test]
async fn a_model_is_found_by_its_name() {
    let (site, _provider) = limited(0, 0).await;
    let listed: Value = serde_json::from_str(&get(&site, "/v1/models").await.body).unwrap();
    for model in listed["data"].as_array().unwrap() {
        let got = get(&site, &format!("/v1/models/{}", model["id"].as_str().unwrap())).await;
        assert_eq!((got.status, serde_json::from_str::<Value>(&got.body).unwrap()), (200, model.clone()));
    }
    let got = get(&site, "/v1/models/no/such%20model").await;
    assert_eq!(
        (got.status, got.error("code"), got.error("param")),
        (404, json!("model_not_found"), json!("model"))
    );
    assert_eq!(get(&site, "/v1/models/%ff").await.status, 400);
}

#[tokio::test]
async fn a_providers_own_fault_finding_is_passed_on() {
    let words = r#"{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
    let provider = Scripted::start(answer(400, &[], words)).await;
    let site = site(&provider.base_url()).await;
    let got = site.complete(GOOD).await;
    assert_eq!(
        (got.status, got.error("param"), got.error("code")),
        (400, json!("messages"), json!("context_length_exceeded"))
    );
    assert!(got.error("message").as_str().unwrap().ends_with("too long"));
}
