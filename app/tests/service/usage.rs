//! What is charged: the provider's report, an estimate where there is none, nothing for a failure.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use crate::scripted::{Act, answer};
use crate::support::{
    Reading, Setup, Site, completion, last, piece, spec_answer, streamed, tool_call, words,
};

/// What of the ledger was estimated.
async fn estimated(site: &Site, route: &str) -> (i64, i64) {
    let sum =
        |column: &str| format!("SELECT COALESCE(SUM({column}), 0) FROM llm_usage WHERE route = '{route}'");
    (site.number(&sum("estimated_input_tokens")).await, site.number(&sum("estimated_output_tokens")).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_hangs_up_amid_a_stream_is_charged() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    let stream = eve.completion(&json!({ "stream": true }));
    for (route, request) in [("openai", stream), ("chat", eve.chat_request())] {
        let gate = Arc::new(Notify::new());
        let rest = [vec![piece("lo")], last(31, 17)].concat();
        site.upstream.next(streamed("Hel", vec![Act::Wait(gate.clone())], rest));
        let mut answer = Reading::begin(request).await;
        answer.up_to("Hel").await;
        drop(answer);
        gate.notify_one();
        site.totals_become(&format!("route = '{route}'"), (31, 17, 1)).await;
        assert_eq!(estimated(&site, route).await, (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_adds_nothing() {
    let site = Setup::new().upstream(answer(500, &[], r#"{"error":{"message":"sk-inside"}}"#)).start().await;
    let eve = site.key("eve@example.com", "acme");
    for answer in [
        eve.generate().await,
        eve.post("/api/sources/generate", &json!({ "description": "Visits by day" })).await,
        eve.chat().await,
        eve.chat_streamed().await,
        eve.complete().await,
        eve.complete_streamed().await,
    ] {
        assert_eq!(answer.status, 502, "{}", answer.text);
        assert!(!answer.sentence().contains("sk-"), "{}", answer.text);
    }
    // A connection that breaks before the first piece is a failure, too.
    site.upstream.next(vec![Act::Reset]);
    site.upstream.next(vec![Act::Reset]);
    assert_eq!(eve.complete_streamed().await.status, 502);
    assert_eq!(site.totals("1").await, (0, 0, 0));
    assert_eq!(site.column("SELECT model FROM llm_usage").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_finds_wrong_is_passed_on_and_free() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    site.upstream.next(answer(
        400,
        &["Content-Type: application/json"],
        r#"{"error":{"message":"temperature is too high"}}"#,
    ));
    let refused = eve.complete().await;
    assert_eq!(refused.status, 400);
    assert!(refused.sentence().contains("temperature is too high"), "{}", refused.text);
    assert_eq!(site.upstream.requests().len(), 1);
    assert_eq!(site.totals("1").await, (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_cut_after_its_first_piece_ends_in_an_error_and_is_estimated() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    let cut = || streamed("The beginning of an answer", Vec::new(), vec![Act::Reset]);
    site.upstream.next(cut());
    let events = eve.complete_streamed().await.events();
    let (_, error) = events.last().unwrap();
    assert!(error["error"]["message"].is_string() && error["error"]["type"].is_string(), "{events:?}");
    assert!(!events.iter().any(|(_, data)| *data == json!("[DONE]")), "{events:?}");

    site.upstream.next(cut());
    let events = eve.chat_streamed().await.events();
    let (name, error) = events.last().unwrap();
    assert!(name == "error" && error["error"].is_string(), "{events:?}");

    for route in ["openai", "chat"] {
        let (input, output, requests) = site.totals(&format!("route = '{route}'")).await;
        assert!(input > 0 && output > 0 && requests == 1, "{route}: {input}, {output}, {requests}");
        assert_eq!(estimated(&site, route).await, (input, output), "{route}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_report_is_estimated_and_a_reported_0_is_0() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    let message = json!({ "role": "assistant", "content": "Hello there" });
    site.upstream.next(completion(&message, Some((0, 0))));
    assert_eq!(eve.complete().await.status, 200);
    assert_eq!(site.totals("1").await, (0, 0, 1));
    site.upstream.next(completion(&message, None));
    assert_eq!(eve.complete().await.status, 200);
    let (input, output, requests) = site.totals("1").await;
    assert!(input > 0 && output > 0 && requests == 2, "{input}, {output}, {requests}");
    assert_eq!(estimated(&site, "openai").await, (input, output));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_invalid_twice_is_a_502_and_both_are_charged() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    let unfit = json!({ "title": "x", "widgets": [
        { "id": "w", "kind": "pie", "title": "t", "query": { "column": "nowhere" } }] });
    site.upstream.next(words("I would rather not.", 10, 1));
    site.upstream.next(words(&unfit.to_string(), 20, 2));
    let answer = eve.generate().await;
    assert_eq!(answer.status, 502);
    assert!(answer.sentence().contains("no valid dashboard spec"), "{}", answer.text);
    assert_eq!(answer.limit("ratelimit", "rate", "r"), Some(19), "one admission");
    assert_eq!(site.totals("route = 'generate'").await, (30, 3, 1));
    let asked = site.upstream.requests();
    assert_eq!(asked.len(), 2);
    let messages = asked[1].json()["messages"].as_array().unwrap().clone();
    assert_eq!(messages[messages.len() - 2]["content"], "I would rather not.");
    assert!(messages.last().unwrap()["content"].as_str().unwrap().contains("not a valid dashboard spec"));

    // Mended at the second try, in a fence or as a function's arguments.
    site.upstream.next(words("{", 10, 1));
    site.upstream.next(words(&format!("```json\n{}\n```", crate::support::spec()), 20, 2));
    let mended = eve.generate().await.json();
    assert_eq!(mended["spec"], crate::support::spec());
    assert_eq!(mended["usage"], json!({ "input_tokens": 30, "output_tokens": 3 }));
    site.upstream.next(tool_call("dashboard_spec", &crate::support::spec(), 5, 5));
    assert_eq!(eve.generate().await.json()["spec"], crate::support::spec());
    assert_eq!(site.totals("route = 'generate'").await, (65, 11, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_charged_to_the_selected_workspace() {
    let site = Site::start().await;
    let draft = json!({ "name": "Visits", "kind": "csv", "columns": ["day", { "name": "visits", "type": "number" }] });
    site.upstream.next(words(&draft.to_string(), 9, 8));
    site.upstream.next(words(&draft.to_string(), 9, 8));
    let bob = site.sign_in("bob@example.com").await;
    let body = json!({ "description": "Visits by day", "workspace": "acme" });
    assert_eq!(bob.put("/api/me/workspace", &json!({ "workspace": "globex" })).await.status, 204);
    let answer = bob.post("/api/sources/generate?workspace=acme", &body).await;
    if answer.status == 200 {
        let columns = json!([{ "name": "day", "type": "text" }, { "name": "visits", "type": "number" }]);
        assert_eq!(answer.json()["draft"], json!({ "name": "Visits", "kind": "csv", "columns": columns }));
    }
    let plain = json!({ "description": "Visits by day" });
    assert_eq!(bob.post("/api/sources/generate", &plain).await.status, 200);
    assert_eq!(site.totals("workspace_id = 'acme'").await, (0, 0, 0));
    let (_, _, requests) = site.totals("workspace_id = 'globex' AND route = 'source-draft'").await;
    assert!(requests >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_equal_the_ledger() {
    let site = Setup::new().rate(3).upstream(spec_answer(1_234, 56)).start().await;
    let eve = site.key("eve@example.com", "acme");
    assert_eq!((eve.generate().await.status, eve.complete().await.status), (200, 200));
    assert_eq!(eve.chat().await.status, 200);
    assert_eq!(eve.complete().await.status, 429);
    // Another program's rows and edits, of other days too.
    site.execute(
        "INSERT INTO llm_usage (workspace_id, day, route, model, input_tokens, output_tokens, requests)
           VALUES ('globex', '2020-02-02', 'chat', 'odd \"model\"', 5, 6, 7), ('globex', '2020-02-03', 'chat', 'odd \"model\"', 1, 1, 1);
         UPDATE llm_usage SET output_tokens = output_tokens + 1000 WHERE route = 'generate'",
    )
    .await;
    let text = site.anyone().get("/metrics").await.text;
    let mut told: Vec<String> = text
        .lines()
        .filter(|line| {
            line.starts_with("tollkeeper_llm_tokens") || line.starts_with("tollkeeper_llm_requests")
        })
        .map(str::to_owned)
        .collect();
    let labels = r#"'{workspace="' || workspace_id || '",route="' || route || '",model="' || REPLACE(model, '"', '\"') || '"'"#;
    let mut wanted = Vec::new();
    for (name, more, column) in [
        ("tokens", r#",direction="input""#, "input_tokens"),
        ("tokens", r#",direction="output""#, "output_tokens"),
        ("requests", "", "requests"),
    ] {
        wanted.extend(
            site.column(&format!(
                "SELECT 'tollkeeper_llm_{name}_total' || {labels} || '{more}}} ' || SUM({column})
                 FROM llm_usage GROUP BY workspace_id, route, model"
            ))
            .await,
        );
    }
    told.sort();
    wanted.sort();
    assert_eq!(told, wanted);
    assert!(text.contains("tollkeeper_llm_refusals_total{workspace=\"acme\",limit=\"rate\"} 1\n"), "{text}");
}
