//! Embeddings and responses: through the same gate, where a provider has them.

use serde_json::{Value, json};

use crate::scripted::{Act, Scripted, answer, stream, stream_head};
use crate::site::{site, site_with_limits};

const CHAT: &str = r#"{"model":"default","messages":[{"role":"user","content":"Hi"}]}"#;
const RESPOND: &str = r#"{ "model":"default","input":"Hi","stream":true,"store":false }"#;

fn events(objects: &[&str]) -> String {
    let mut text = String::new();
    for object in objects {
        let event: Value = serde_json::from_str(object).expect("JSON");
        let kind = event["type"].as_str().expect("a type");
        for part in ["event: ", kind, "\ndata: ", object, "\n\n"] {
            text.push_str(part);
        }
    }
    text
}

#[tokio::test]
async fn embeddings_pass_through_and_are_charged() {
    let said = "{\"object\":\"list\", \"data\":[{\"index\":0,\"embedding\":[0.10,-1e-3]}],\"usage\":{\"prompt_tokens\":8,\"total_tokens\":8}}";
    let provider = Scripted::start(answer(200, &["X-Request-Id: req_1"], said)).await;
    let site = site_with_limits(&provider.base_url(), 20, 16).await;
    let asked = r#"{"input":["a",[1,2]], "model":"default","encoding_format":"float"}"#;
    let got = site.post("/v1/embeddings", asked).await;
    assert_eq!((got.status, got.body.as_str(), got.header("x-request-id")), (200, said, Some("req_1")));
    assert_eq!(got.header("x-ratelimit-remaining-requests"), Some("19"));
    let request = &provider.requests()[0];
    assert!(request.head.starts_with("POST /v1/embeddings "), "{}", request.head);
    assert_eq!(String::from_utf8_lossy(&request.body), asked.replace("\"default\"", "\"m-1\""));
    assert_eq!(site.charged().await, (1, 8, 0, 0));

    assert_eq!(site.post("/v1/embeddings", asked).await.status, 200);
    let refused = site.post("/v1/embeddings", asked).await;
    assert_eq!((refused.status, refused.error("code")), (429, json!("insufficient_quota")));
}

#[tokio::test]
async fn a_response_streams_as_it_comes_and_is_charged_before_its_end() {
    let begin =
        r#"{"type":"response.created","sequence_number":0,"response":{"id":"r","usage":null,"error":null}}"#;
    let delta = r#"{ "type":"response.output_text.delta", "delta":"Hi\u0021","n":1.0 }"#;
    let end = r#"{"type":"response.completed","response":{"id":"r","output":[],"usage":{"input_tokens":11,"output_tokens":7}}}"#;
    let all = events(&[begin, delta, end]);
    // A provider that neither ends its stream nor hangs up is not waited for.
    let script = vec![stream_head(), Act::Send(all.clone().into_bytes()), Act::Hang];
    let provider = Scripted::start(script).await;
    let site = site(&provider.base_url()).await;
    let got = site.post("/v1/responses", RESPOND).await;
    assert_eq!((got.status, got.body), (200, all));
    assert_eq!(got.headers["content-type"], "text/event-stream");
    assert_eq!(site.charged().await, (1, 11, 7, 0));
    let sent = String::from_utf8(provider.requests()[0].body.clone()).unwrap();
    assert_eq!(sent, RESPOND.replace("\"default\"", "\"m-1\""), "nothing is asked for that wasn't");
}

#[tokio::test]
async fn a_response_that_breaks_off_is_estimated_and_says_so() {
    let delta = r#"{"type":"response.output_text.delta","delta":"eight ch"}"#;
    let failed = r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"no"}}}"#;
    for rest in ["", failed] {
        let objects: Vec<&str> = [delta, rest].into_iter().filter(|object| !object.is_empty()).collect();
        let provider = Scripted::start(stream(&[&events(&objects)])).await;
        let site = site(&provider.base_url()).await;
        let got = site.post("/v1/responses", RESPOND).await;
        let (before, error) = got.body.split_once("event: error\ndata: ").unwrap();
        assert_eq!(before, events(&[delta]));
        let error: Value = serde_json::from_str(error).unwrap();
        assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("provider_failed")));
        assert_eq!(error["message"], error["error"]["message"]);
        let (requests, _, output, estimated) = site.charged().await;
        assert!(requests == 1 && output == 2 && estimated > 2);
    }
}

#[tokio::test]
async fn a_whole_response_and_one_that_came_in_the_other_form() {
    let response = r#"{"id":"r","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":11,"output_tokens":7}}"#;
    let asked = RESPOND.replace("true", "false");
    let provider = Scripted::start(answer(200, &[], response)).await;
    let site = site(&provider.base_url()).await;
    assert_eq!(site.post("/v1/responses", &asked).await.body, response);
    let streamed = site.post("/v1/responses", RESPOND).await;
    let (name, event) = streamed.body.split_once("\ndata: ").unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!((name, event["response"]["id"].as_str()), ("event: response.completed", Some("r")));

    let delta = r#"{"type":"response.output_text.delta","delta":"Hi"}"#;
    let end = format!("{{\"type\":\"response.completed\",\"response\":{response}}}");
    provider.next(stream(&[&events(&[delta, &end])]));
    let whole: Value = serde_json::from_str(&site.post("/v1/responses", &asked).await.body).unwrap();
    assert_eq!(whole, serde_json::from_str::<Value>(response).unwrap());
    assert_eq!(site.charged().await, (3, 33, 21, 0));
}

#[tokio::test]
async fn a_provider_that_lacks_the_call_stays_in_use_for_others() {
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
    let provider = Scripted::start(answer(200, &[], whole)).await;
    let site = site_with_limits(&provider.base_url(), 20, 2_000_000).await;
    for (path, body) in
        [("/v1/embeddings", r#"{"model":"default","input":"Hi"}"#), ("/v1/responses", RESPOND)]
    {
        for status in [404, 405, 501] {
            provider.next(answer(status, &[], "<html>"));
            let got = site.post(path, body).await;
            assert_eq!(
                (got.status, got.error("code"), got.error("param")),
                (404, json!("model_not_found"), json!("model")),
                "{status}"
            );
            assert!(got.error("message").as_str().unwrap().contains(path), "{}", got.body);
        }
    }
    let got = site.complete(CHAT).await;
    assert_eq!(
        (got.status, got.header("x-ratelimit-remaining-requests")),
        (200, Some("19")),
        "a 404 costs no token"
    );
    assert_eq!(site.charged().await, (1, 11, 7, 0));
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let provider = Scripted::start(answer(500, &[], "")).await;
    let site = site(&provider.base_url()).await;
    for (path, body, param) in [
        ("/v1/embeddings", r#"{"model":"default"}"#, "input"),
        ("/v1/embeddings", r#"{"input":"x"}"#, "model"),
        ("/v1/responses", r#"{"model":"default"}"#, "input"),
        ("/v1/responses", r#"{"model":"default","input":"x","background":true}"#, "background"),
    ] {
        let got = site.post(path, body).await;
        assert_eq!((got.status, got.error("param")), (422, json!(param)), "{body}");
    }
    assert_eq!(site.post("/v1/embeddings", r#"{"model":"gpt-x","input":"x"}"#).await.status, 404);
    assert_eq!(provider.requests().len(), 0);
}
