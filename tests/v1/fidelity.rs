//! What Tollkeeper need not understand passes through byte for byte, both ways.

use crate::scripted::{Scripted, answer, stream};
use crate::site::site;

/// Numbers, escapes, blanks, order, and members that nobody knows.
const ODD: &str = r#"{ "zeta":1, "model" : "default","messages":[{"role":"user","content":[{"type":"text","text":"a\u00e9\ud83d \/"},
    {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}]},
    {"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"}}]},
    {"role":"tool","tool_call_id":"t","content":""}],
  "temperature":1.0,"seed":123456789012345678901234567890,"top_p":1e-0,"reasoning_effort":"low","logprobs":true,"top_logprobs":2,
  "response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"$ref":"/x"}}},"stream":null,"stream_options":null,
  "metadata":{"model":"mine","b":[1.50,-0.0,1E+2]},"max_tokens":5,"max_completion_tokens":7,"alpha":{} }
"#;

#[tokio::test]
async fn a_request_and_its_answer() {
    let said = "{\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7,\"cost\":1.10},\"id\":\"c\", \"object\":\"chat.completion\",\
                \"created\":1.0,\"model\":\"m-1-2026\",\"choices\":[{\"logprobs\":{\"content\":[{\"logprob\":-0.10}]},\"index\":0,\
                \"message\":{\"content\":\"\\u0048i\",\"role\":\"assistant\",\"reasoning\":\"hm\"},\"finish_reason\":\"stop\"}],\"x\":12345678901234567890123}\n";
    let provider =
        Scripted::start(answer(200, &["Content-Type: application/json", "X-Request-Id: req_1"], said)).await;
    let site = site(&provider.base_url()).await;
    let got = site.complete(ODD).await;
    assert_eq!((got.status, got.body.as_str()), (200, said));
    assert_eq!(got.header("x-request-id"), Some("req_1"));
    assert_eq!(got.header("content-type"), Some("application/json"));
    let sent = String::from_utf8(provider.requests()[0].body.clone()).unwrap();
    assert_eq!(sent, ODD.replacen("\"default\"", "\"m-1\"", 1));
    assert_eq!(site.charged().await, (1, 11, 7, 0));
}

#[tokio::test]
async fn a_stream_with_several_choices() {
    let chunk = |index: u8, usage: &str, delta: &str| {
        format!(
            "{{ \"id\":\"c\",{usage}\"choices\":[{{\"index\":{index},\"delta\":{{{delta}}},\"logprob\":-1.0}}],\"x\":1e5 }}"
        )
    };
    let ends = |index: u8| {
        format!("{{\"choices\":[{{\"index\":{index},\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}")
    };
    let words = [
        (0, "\"content\":\"On\\u0065 \""),
        (1, "\"content\":\"Eins \""),
        (1, "\"reasoning\":\"hm\""),
        (0, "\"content\":\"two\""),
    ];
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"cost":1.0}}"#;
    let sent = |usage: &str| {
        words.map(|(index, delta)| chunk(index, usage, delta)).into_iter().chain([ends(0), ends(1)])
    };
    let events = |objects: Vec<String>| {
        objects.iter().flat_map(|object| ["data: ", object, "\n\n"]).collect::<String>()
    };
    let all = events(sent("\"usage\":null,").chain([usage.into(), "[DONE]".into()]).collect());
    let provider = Scripted::start(stream(&[": hello\n\n", &all])).await;
    let site = site(&provider.base_url()).await;
    let ask = |options: &str| {
        format!(
            r#"{{"model":"default","messages":[{{"role":"user","content":"Hi"}}],"n":2,"stream":true{options}}}"#
        )
    };

    for options in [
        "",
        ",\"stream_options\":null",
        ",\"stream_options\":{}",
        ",\"stream_options\":{\"include_usage\":false}",
    ] {
        let got = site.complete(&ask(options)).await;
        assert_eq!(got.body, events(sent("").chain(["[DONE]".into()]).collect()), "{options}");
        assert_eq!(got.header("content-type"), Some("text/event-stream"));
    }
    let got = site.complete(&ask(",\"stream_options\":{\"include_usage\":true}")).await;
    assert_eq!(got.body, all, "with the usage that was asked for");
    assert!(
        provider.requests().iter().all(|request| request.json()["stream_options"]["include_usage"] == true)
    );
    assert_eq!(site.charged().await, (5, 55, 35, 0));
}
