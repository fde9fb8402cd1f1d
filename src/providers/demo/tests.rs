use serde_json::json;

use super::*;
use crate::clock::ManualClock;
use crate::ledger::StepUsage;
use crate::model::dashboard::{Column, Draft, Spec};
use crate::model::{Timestamp, Usage};

fn model() -> DemoModel {
    DemoModel::new(ManualClock::new(Timestamp(1_789_898_400_000)), Pace::INSTANT)
}

fn request(body: &Value, stream: bool) -> ModelRequest {
    ModelRequest::new(body.as_object().cloned().unwrap(), stream)
}

async fn whole(body: &Value) -> Value {
    let answer = model().send(&request(body, false)).await;
    let UpstreamBody::Whole { completion, step, .. } = answer.body else { panic!("whole") };
    assert_eq!(step, StepUsage::reported(step.usage));
    assert_eq!(completion["usage"]["prompt_tokens"], json!(step.usage.input_tokens));
    assert_eq!(completion["usage"]["completion_tokens"], json!(step.usage.output_tokens));
    assert!(step.usage.input_tokens > 0 && step.usage.output_tokens > 0);
    completion
}

fn message(completion: &Value) -> &Value {
    &completion["choices"][0]["message"]
}

fn columns() -> Vec<Column> {
    ["day", "region", "amount"].map(|name| Column { name: name.into(), kind: "text".into() }).into()
}

fn spec_schema() -> Value {
    json!({"type": "object", "properties": {"title": {"type": "string"}, "widgets": {"type": "array", "items": {
        "type": "object", "properties": {"query": {"type": "object", "properties": {
            "column": {"type": "string", "enum": ["day", "region", "amount"]}}}}}}}})
}

fn asking_for(schema: &Value, words: &str) -> Value {
    json!({"messages": [{"role": "user", "content": words}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": true}}})
}

#[tokio::test]
async fn a_spec_is_valid_and_names_real_columns() {
    for words in ["Show me revenue", "", "Amount by day, please", "漢字"] {
        let completion = whole(&asking_for(&spec_schema(), words)).await;
        let spec: Spec = serde_json::from_str(message(&completion)["content"].as_str().unwrap()).unwrap();
        assert_eq!(spec.check(&columns()), Ok(()));
        assert!(spec.widgets.len() >= 2 && spec.title.contains("demo"), "{spec:?}");
    }
    let long: String = "x".repeat(200);
    let mut schema = spec_schema();
    schema["properties"]["widgets"]["items"]["properties"]["query"]["properties"]["column"]["enum"] =
        json!([long]);
    let completion = whole(&asking_for(&schema, "anything")).await;
    let spec: Spec = serde_json::from_str(message(&completion)["content"].as_str().unwrap()).unwrap();
    assert_eq!(spec.check(&[Column { name: long, kind: "text".into() }]), Ok(()));
}

#[tokio::test]
async fn a_forced_function_gets_its_arguments() {
    let body = json!({"messages": [{"role": "user", "content": "Sales"}],
        "tools": [{"type": "function", "function": {"name": "dashboard_spec", "parameters": spec_schema()}}],
        "tool_choice": {"type": "function", "function": {"name": "dashboard_spec"}}});
    let completion = whole(&body).await;
    let call = &message(&completion)["tool_calls"][0]["function"];
    assert_eq!(call["name"], "dashboard_spec");
    let spec: Spec = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(spec.check(&columns()), Ok(()));
    assert_eq!(completion["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn a_draft_is_guessed_from_the_description() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "kind": {"type": "string"},
        "columns": {"type": "array", "items": {"type": "object", "properties": {
            "type": {"type": "string", "enum": ["text", "number", "date", "boolean"]}}}}}});
    for (words, kind, expected) in [
        (
            "Daily orders with order date, customer, amount and is_paid",
            "csv",
            &[("order_date", "date"), ("customer", "text"), ("amount", "number"), ("is_paid", "boolean")][..],
        ),
        (
            "Monthly sales by region from the postgres database",
            "postgres",
            &[("month", "date"), ("sales", "number"), ("region", "text")],
        ),
        ("", "csv", &[("day", "date"), ("name", "text"), ("amount", "number")]),
    ] {
        let completion = whole(&asking_for(&schema, words)).await;
        let draft: Draft = serde_json::from_str(message(&completion)["content"].as_str().unwrap()).unwrap();
        assert_eq!(draft.check(), Ok(()));
        assert_eq!(draft.kind.as_str(), kind, "{words}");
        let got: Vec<(&str, &str)> =
            draft.columns.iter().map(|c| (c.name.as_str(), c.kind.as_str())).collect();
        assert_eq!(got, expected, "{words}");
    }
}

/// Plays a whole turn against tools that answer as the chat's do; what was called, the last spec, the words.
async fn chat(words: &str, spec: Value) -> (Vec<String>, Option<Spec>, String) {
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let tools = json!([
        tool("read_source", json!({})),
        tool("read_dashboard", json!({})),
        tool("update_dashboard", json!({"type": "object", "properties": {"spec": spec_schema()}}))
    ]);
    let mut messages =
        vec![json!({"role": "system", "content": "You help."}), json!({"role": "user", "content": words})];
    let (mut called, mut updated) = (Vec::new(), None);
    for _ in 0..6 {
        let completion = whole(&json!({"messages": messages, "tools": tools})).await;
        let said = message(&completion).clone();
        let calls = said["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            return (called, updated, said["content"].as_str().unwrap().to_owned());
        }
        messages.push(said);
        for call in calls {
            let name = call["function"]["name"].as_str().unwrap();
            let result = match name {
                "read_source" => json!({"columns": columns(), "total_rows": 3,
                    "rows": [["2026-01-01", "north", 1200], ["2026-01-01", "south", "2000.5"], ["2026-01-02", "north", 300]]}),
                "read_dashboard" => json!({"name": "Revenue", "spec": spec}),
                _ => {
                    let arguments: Value =
                        serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                    let spec: Spec = serde_json::from_value(arguments["spec"].clone()).unwrap();
                    assert_eq!(spec.check(&columns()), Ok(()));
                    updated = Some(spec);
                    json!({"saved": true})
                }
            };
            called.push(name.to_owned());
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result.to_string()}));
        }
    }
    panic!("no end: {called:?}");
}

#[tokio::test]
async fn a_question_is_answered_from_the_rows() {
    let (called, updated, words) = chat("What stands out?", Value::Null).await;
    assert_eq!((called, updated), (vec!["read_dashboard".to_owned(), "read_source".to_owned()], None));
    assert_eq!(words, "Demo model here. In 3 rows, amount adds up to 3,500.5; south leads with 2,000.5.");
    let (.., words) = chat("Which day was best?", Value::Null).await;
    assert!(words.contains("3,500.5"), "{words}");
}

#[tokio::test]
async fn a_change_is_made_when_it_is_asked_for() {
    let (called, made, words) = chat("Make me a dashboard", Value::Null).await;
    assert_eq!(called, ["read_dashboard", "read_source", "update_dashboard"]);
    let made = made.unwrap();
    assert!(words.contains(&made.title) && words.contains("Revenue"), "{words}");

    let now = serde_json::to_value(&made).unwrap();
    let change = |words: &'static str| {
        let now = now.clone();
        async move { chat(words, now).await.1.unwrap() }
    };
    let added = change("Add a line chart of the average amount per day").await;
    let last = added.widgets.last().unwrap();
    assert_eq!(added.widgets.len(), made.widgets.len() + 1);
    assert_eq!(
        serde_json::to_value(last).unwrap()["query"],
        json!({"column": "amount", "aggregate": "avg", "group_by": "day"})
    );
    assert_eq!(change("Remove the table").await.widgets.len(), made.widgets.len() - 1);
    assert_eq!(change("Rename it to \"North and south\"").await.title, "North and south");
    let turned = change("Turn the bar chart of amount by region into a table").await;
    let tables = |spec: &Spec| serde_json::to_string(spec).unwrap().matches(r#""kind":"table""#).count();
    assert_eq!(tables(&turned), tables(&made) + 1);
}

#[tokio::test]
async fn a_stream_says_what_the_whole_answer_says() {
    let tools = json!([{"type": "function", "function": {"name": "read_source", "parameters": {}}}]);
    for body in [
        json!({"messages": [{"role": "user", "content": "Why is the sky blue? 漢字"}]}),
        json!({"messages": [{"role": "user", "content": "Hello"}], "tools": tools}),
        asking_for(&spec_schema(), "Sales"),
        json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5}),
    ] {
        let completion = whole(&body).await;
        let UpstreamBody::Stream(events, tally) = model().send(&request(&body, true)).await.body else {
            panic!("a stream")
        };
        let events: Vec<Event> = events.collect().await;
        let Some(Event::End(step)) = events.last() else { panic!("an end") };
        assert_eq!((*step, step.estimated), (tally.step(), Usage::default()));
        assert_eq!(completion["usage"]["completion_tokens"], json!(step.usage.output_tokens));
        let pieces: Vec<&Piece> =
            events.iter().filter_map(|e| if let Event::Piece(p) = e { Some(p) } else { None }).collect();
        let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(text, message(&completion)["content"].as_str().unwrap_or_default());
        let arguments: String =
            pieces.iter().flat_map(|p| &p.tool_calls).map(|part| part.arguments.as_str()).collect();
        assert_eq!(
            arguments,
            message(&completion)["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default()
        );
        let reason = pieces.iter().find_map(|piece| piece.finish_reason.as_deref());
        assert_eq!(reason, completion["choices"][0]["finish_reason"].as_str());
        let last: Value = serde_json::from_str(&pieces.last().unwrap().data).unwrap();
        assert!(pieces.last().unwrap().only_usage);
        assert_eq!(last["usage"], completion["usage"]);
    }
}

#[tokio::test]
async fn plain_words_say_that_it_is_a_demo() {
    let completion =
        whole(&json!({"messages": [{"role": "user", "content": "Why is\nthe sky blue?"}]})).await;
    let text = message(&completion)["content"].as_str().unwrap();
    assert!(text.contains("demo model") && text.contains("Why is the sky blue?"), "{text}");
    assert_eq!((&completion["model"], &completion["created"]), (&json!("demo-1"), &json!(1_789_898_400)));
    let short = whole(&json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5})).await;
    assert_eq!(message(&short)["content"].as_str().unwrap().len(), 20);
    assert_eq!(short["choices"][0]["finish_reason"], "length");
}

#[tokio::test(start_paused = true)]
async fn a_person_can_follow_it() {
    let body = json!({"messages": [{"role": "user", "content": "Hello"}]});
    let begun = tokio::time::Instant::now();
    let slow = DemoModel::new(ManualClock::new(Timestamp(0)), Pace::HUMAN);
    let UpstreamBody::Stream(events, _) = slow.send(&request(&body, true)).await.body else {
        panic!("a stream")
    };
    assert_eq!(begun.elapsed(), Pace::HUMAN.before);
    let pieces = events.count().await;
    let spent = begun.elapsed().saturating_sub(Pace::HUMAN.before);
    assert!(spent >= Pace::HUMAN.piece * u32::try_from(pieces - 5).unwrap(), "{pieces} pieces in {spent:?}");
}
