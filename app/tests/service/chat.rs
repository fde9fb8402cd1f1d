//! The turns of a dashboard's chat and the tools of the model.

use serde_json::{Value, json};

use crate::scripted::answer;
use crate::support::{Site, last, spec, streamed, streamed_tool_call, tool_call, words};

/// What the tools answered, as the model was told in its last request.
fn told(site: &Site) -> Vec<Value> {
    let request = site.upstream.requests().last().unwrap().json();
    let messages = request["messages"].as_array().unwrap().clone();
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools.map(|tool| serde_json::from_str(tool["content"].as_str().unwrap()).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_takes_six_steps_at_most_the_sixth_without_tools() {
    for by_events in [false, true] {
        let site = Site::start().await;
        let eve = site.key("eve@example.com", "acme");
        let nothing = json!({});
        for _ in 0..5 {
            let ask = if by_events { streamed_tool_call } else { tool_call };
            site.upstream.next(ask("read_source", &nothing, 100, 10));
        }
        let (done, first) = if by_events {
            site.upstream.next(streamed("The south leads.", Vec::new(), last(100, 10)));
            let answer = eve.chat_streamed().await;
            let events = answer.events();
            let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["tool", "tool", "tool", "tool", "tool", "delta", "done"]);
            assert_eq!(events[0].1, json!({ "name": "read_source" }));
            assert_eq!(events[5].1, json!({ "text": "The south leads." }));
            (events[6].1.clone(), answer)
        } else {
            site.upstream.next(words("The south leads.", 100, 10));
            let answer = eve.chat().await;
            (answer.json(), answer)
        };
        assert_eq!(
            done,
            json!({ "message": "The south leads.", "model": "model-1", "steps": 6,
                    "usage": { "input_tokens": 600, "output_tokens": 60 } })
        );
        assert_eq!(first.limit("ratelimit", "rate", "r"), Some(19), "one rate token a turn");
        let asked = site.upstream.requests();
        assert_eq!(asked.len(), 6);
        assert!(
            asked[..5].iter().all(|request| request.json()["tools"].as_array().is_some_and(|t| t.len() == 3))
        );
        assert!(asked[5].json().get("tools").is_none());
        assert_eq!(site.totals("route = 'chat'").await, (600, 60, 1));
        assert_eq!(told(&site).len(), 5);
        assert_eq!(told(&site)[0]["rows"][0], json!(["2026-01-01", "south", "12"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_never_stops_asking_is_asked_six_times() {
    let site =
        crate::support::Setup::new().upstream(tool_call("read_dashboard", &json!({}), 10, 1)).start().await;
    let answer = site.key("eve@example.com", "acme").chat().await;
    assert_eq!((answer.status, answer.json()["steps"].as_u64()), (200, Some(6)), "{}", answer.text);
    assert_eq!(site.upstream.requests().len(), 6);
    assert_eq!(site.totals("1").await, (60, 6, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn update_dashboard_changes_the_dashboard() {
    let site = Site::start().await;
    let eve = site.sign_in("eve@example.com").await;
    assert_eq!(eve.get("/api/dashboards/revenue").await.json()["spec"], Value::Null);
    site.upstream.next(streamed_tool_call("update_dashboard", &json!({ "spec": spec() }), 10, 1));
    site.upstream.next(streamed("Done.", Vec::new(), last(10, 1)));
    let events = eve.chat_streamed().await.events();
    assert_eq!(events.last().unwrap().0, "done", "{events:?}");
    assert_eq!(told(&site), [json!({ "saved": true })]);
    assert_eq!(eve.get("/api/dashboards/revenue").await.json()["spec"], spec());
    let actors =
        site.column("SELECT actor FROM audit_log WHERE workspace_id = 'acme' ORDER BY id DESC").await;
    assert_eq!(actors[0], "eve@example.com");

    // And it is what the model reads in the next turn.
    site.upstream.next(tool_call("read_dashboard", &json!({}), 10, 1));
    site.upstream.next(words("There it is.", 10, 1));
    assert_eq!(eve.chat().await.status, 200);
    assert_eq!(told(&site), [json!({ "name": "Revenue", "spec": spec() })]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_tool_is_told_to_the_model_and_the_turn_goes_on() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    let mut wrong = spec();
    wrong["widgets"][0]["query"]["column"] = json!("nowhere");
    site.upstream.next(tool_call("drop_tables", &json!({}), 10, 1));
    site.upstream.next(tool_call("update_dashboard", &json!({ "spec": wrong }), 10, 1));
    site.upstream.next(tool_call("update_dashboard", &json!({ "spec": "none" }), 10, 1));
    site.upstream.next(words("I could not.", 10, 1));
    let answer = eve.chat().await;
    assert_eq!((answer.status, answer.json()["steps"].as_u64()), (200, Some(4)), "{}", answer.text);
    let told = told(&site);
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|told| told["error"].is_string()), "{told:?}");
    assert!(told[1]["error"].as_str().unwrap().contains("nowhere"), "{told:?}");
    assert_eq!(eve.get("/api/dashboards/revenue").await.json()["spec"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_step_that_fails_ends_the_turn_and_the_finished_ones_are_charged() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    site.upstream.next(streamed_tool_call("read_source", &json!({}), 40, 4));
    site.upstream.next(answer(500, &[], "{}"));
    let events = eve.chat_streamed().await.events();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["tool", "error"], "{events:?}");
    assert!(events[1].1["error"].is_string());
    assert_eq!(site.totals("route = 'chat'").await, (40, 4, 1));

    site.upstream.next(tool_call("read_source", &json!({}), 40, 4));
    site.upstream.next(answer(500, &[], "{}"));
    assert_eq!(eve.chat().await.status, 502);
    assert_eq!(site.totals("route = 'chat'").await, (80, 8, 2));
}
