//! The wire against the habits of real providers, byte for byte.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;
use crate::clock::ManualClock;
use crate::ledger::StepUsage;
use crate::model::{Timestamp, Usage};
use crate::providers::scripted::{Act, Script, Scripted, answer, chunk, chunked_head, stream, stream_head};
use crate::providers::{Event, Operation, Piece};

const ROLE: &str =
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
const ONE: &str = r#"{"choices":[{"index":0,"delta":{"content":"One é "},"finish_reason":null}]}"#;
const TWO: &str = r#"{"choices":[{"index":0,"delta":{"content":"漢🦀"},"finish_reason":null}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;

const REPORTED: StepUsage = StepUsage {
    usage: Usage { input_tokens: 11, output_tokens: 7 },
    estimated: Usage { input_tokens: 0, output_tokens: 0 },
};

fn data(objects: &[&str]) -> String {
    objects.iter().flat_map(|object| ["data: ", object, "\n\n"]).collect()
}

fn whole_stream() -> String {
    data(&[ROLE, ONE, TWO, STOP, USAGE, "[DONE]"])
}

fn request(stream: bool) -> ModelRequest {
    let body =
        json!({"model": "default", "messages": [{"role": "user", "content": "Hello there"}], "seed": 7});
    ModelRequest::new(body.as_object().cloned().unwrap(), stream)
}

fn client() -> WireClient {
    patient(Duration::from_secs(10), Duration::from_secs(10))
}

fn patient(first_byte: Duration, idle: Duration) -> WireClient {
    let clock = ManualClock::new(Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap());
    WireClient::new(clock, Timeouts { first_byte, idle }).unwrap()
}

fn endpoint(server: &Scripted) -> Endpoint {
    Endpoint { base_url: server.base_url(), key: Some(Secret::new("sk-secret")) }
}

async fn ask(script: Script, stream: bool) -> Result<UpstreamAnswer, Failure> {
    let server = Scripted::start(script).await;
    client().send(&endpoint(&server), "m", &request(stream)).await
}

/// The pieces that say something, put together, and how the stream ended.
#[derive(Debug, PartialEq)]
struct Heard {
    text: String,
    pieces: Vec<Piece0>,
    end: Result<StepUsage, String>,
}

type Piece0 = (String, bool);

async fn hear(answer: UpstreamAnswer) -> Heard {
    let UpstreamBody::Stream(events, tally) = answer.body else { panic!("a stream") };
    let events: Vec<Event> = events.collect().await;
    let ends = events.iter().filter(|e| !matches!(e, Event::Piece(_))).count();
    assert_eq!(ends, 1, "exactly one end: {events:?}");
    let mut heard = Heard { text: String::new(), pieces: Vec::new(), end: Err("none".into()) };
    for event in events {
        match event {
            Event::Piece(Piece { data, text, only_usage, .. }) => {
                heard.text.push_str(&text);
                heard.pieces.push((data, only_usage));
            }
            Event::End(step) => {
                assert_eq!(step, tally.step());
                heard.end = Ok(step);
            }
            Event::Cut { error, step } => {
                assert_eq!(step, tally.step());
                heard.end = Err(error);
            }
        }
    }
    heard
}

async fn heard(text: &str) -> Heard {
    hear(ask(stream(&[text]), true).await.map_err(|e| format!("{e:?}")).unwrap()).await
}

async fn refused(script: Script, stream: bool) -> Failure {
    match ask(script, stream).await {
        Ok(_) => panic!("an answer where a failure was due"),
        Err(failure) => failure,
    }
}

fn status(failure: &Failure) -> u16 {
    let Failure::Status { status, .. } = failure else { panic!("{failure:?}") };
    *status
}

#[tokio::test]
async fn the_request_goes_out_as_it_came_with_ours_set() {
    let server = Scripted::start(stream(&[&whole_stream()])).await;
    let text = r#"{"model":"default","messages":[ ],"seed":7.0,"stream":true,"stream_options":{"extra":1}}"#;
    let asked = ModelRequest::read(text.into(), Operation::Chat, true).unwrap();
    client().send(&endpoint(&server), "vendor/m", &asked).await.unwrap();
    let sent = &server.requests()[0];
    assert!(sent.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", sent.head);
    assert_eq!(sent.header("authorization"), Some("Bearer sk-secret"));
    let goes =
        text.replace("default", "vendor/m").replace("\"extra\":1", "\"extra\":1,\"include_usage\":true");
    assert_eq!(String::from_utf8_lossy(&sent.body), goes);

    let server = Scripted::start(answer(200, &[], r#"{"choices":[{"message":{"content":"x"}}]}"#)).await;
    let asked = request(false);
    let keyless = Endpoint { base_url: format!("{}/", server.base_url()), key: None };
    client().send(&keyless, "m", &asked).await.unwrap();
    let sent = &server.requests()[0];
    assert!(sent.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", sent.head);
    assert_eq!(sent.header("authorization"), None);
    assert!(sent.json().get("stream").is_none());
    assert!(sent.json().get("stream_options").is_none());
}

#[tokio::test]
async fn a_stream_passes_through() {
    let heard = heard(&whole_stream()).await;
    let sent = [(ROLE, false), (ONE, false), (TWO, false), (STOP, false), (USAGE, true)];
    assert_eq!(heard.pieces, sent.map(|(data, only)| (data.to_owned(), only)));
    assert_eq!((heard.text.as_str(), heard.end), ("One é 漢🦀", Ok(REPORTED)));
}

#[tokio::test]
async fn a_stream_split_at_any_byte_is_the_same_stream() {
    let text = format!("\u{feff}: hi\r\n\r\n{}", whole_stream().replace('\n', "\r\n"));
    let expected = heard(&whole_stream()).await;
    let server = Scripted::start(Vec::new()).await;
    let client = client();
    for at in 0..=text.len() {
        let (one, two) = text.as_bytes().split_at(at);
        // In HTTP chunks, so that each half arrives as its own part whatever the sockets do.
        let half = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        let halves = [one, two].into_iter().filter(|half| !half.is_empty()).map(half).map(Act::Send);
        server.next([chunked_head()].into_iter().chain(halves).chain([chunk("")]).collect());
        let answer = client.send(&endpoint(&server), "m", &request(true)).await.unwrap();
        assert_eq!(hear(answer).await, expected, "split at byte {at}");
    }
}

fn split_anywhere(text: &[u8], cuts: &[usize]) -> Body {
    let (mut parts, mut rest) = (Vec::new(), text);
    for cut in cuts {
        let (part, more) = rest.split_at((*cut).min(rest.len()));
        parts.push(Ok(Bytes::copy_from_slice(part)));
        rest = more;
    }
    parts.push(Ok(Bytes::copy_from_slice(rest)));
    Box::pin(futures::stream::iter(parts))
}

proptest! {
    #[test]
    fn a_stream_in_any_parts_is_the_same_stream(cuts in prop::collection::vec(1usize..40, 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let text = whole_stream();
        let read = runtime.block_on(async {
            let mut body = split_anywhere(text.as_bytes(), &cuts);
            let far = Instant::now() + Duration::from_secs(10);
            let (begun, _) = reading::first_byte(&mut body, || far).await.unwrap();
            let tally = Tally::new(1);
            let idle = Duration::from_secs(10);
            let events = reading::events_of_stream(Operation::Chat, body, begun, far, idle, tally.clone(), None).await.unwrap();
            let limits = LimitHeaders::default();
            hear(UpstreamAnswer { limits, request_id: None, body: UpstreamBody::Stream(events, tally) }).await
        });
        prop_assert_eq!(read.text, "One é 漢🦀");
        prop_assert_eq!(read.pieces.len(), 5);
        prop_assert_eq!(read.end, Ok(REPORTED));
    }
}

#[tokio::test]
async fn habits_of_framing() {
    let plain = heard(&whole_stream()).await;
    for (habit, text) in [
        ("CR alone", whole_stream().replace('\n', "\r")),
        ("no blank after the colon", whole_stream().replace("data: ", "data:")),
        ("comments", whole_stream().replace("data:", ": OPENROUTER PROCESSING\n\ndata:")),
        ("names and ids", whole_stream().replace("data:", "event: message\nid: 3\nretry: 10\ndata:")),
        ("JSON over several lines", whole_stream().replace("\"delta\":", "\ndata: \"delta\":")),
        ("no blank lines between events", whole_stream().replace("\n\n", "\n")),
        ("no line end at the end", whole_stream().trim_end().to_owned()),
        ("nothing after the usage", data(&[ROLE, ONE, TWO, STOP, USAGE])),
        (
            "pings",
            whole_stream().replace("data:", "event: ping\ndata: {\"type\":\"ping\"}\n\ndata:\n\ndata:"),
        ),
    ] {
        assert_eq!(heard(&text).await, plain, "{habit}");
    }
}

#[tokio::test]
async fn habits_of_reporting_usage() {
    let with = |usage: &str, object: &str| object.replacen('{', &format!("{{\"usage\":{usage},"), 1);
    let running = with(r#"{"prompt_tokens":11,"completion_tokens":2}"#, ONE);
    let last = with(r#"{"prompt_tokens":11,"completion_tokens":7}"#, STOP);
    let null = with("null", STOP);
    let without_choices = USAGE.replace("\"choices\":[],", "");
    let null_choices = USAGE.replace("[]", "null");
    for (habit, objects) in [
        ("on every chunk: the last counts", vec![ROLE, &running, &last, "[DONE]"]),
        ("beside choices", vec![ROLE, ONE, &last, "[DONE]"]),
        ("null elsewhere", vec![ROLE, ONE, USAGE, &null, "[DONE]"]),
        ("without choices", vec![ROLE, ONE, STOP, &without_choices, "[DONE]"]),
        ("choices null", vec![ROLE, ONE, STOP, &null_choices, "[DONE]"]),
    ] {
        let heard = heard(&data(&objects)).await;
        assert_eq!(heard.end, Ok(REPORTED), "{habit}");
        for (text, only_usage) in heard.pieces {
            let object: Value = serde_json::from_str(&text).unwrap();
            let choices = object["choices"].as_array().map(Vec::len);
            assert_eq!(choices, Some(usize::from(!only_usage)), "{habit}: {text}");
        }
    }
    let zero = USAGE.replace("11", "0").replace('7', "0");
    assert_eq!(heard(&data(&[ONE, STOP, &zero, "[DONE]"])).await.end, Ok(StepUsage::default()));

    let missing = heard(&data(&[ONE, STOP, "[DONE]"])).await.end.unwrap();
    assert_eq!(missing.usage, missing.estimated);
    assert_eq!(missing.usage.input_tokens, estimate::input(&request(true)));
    assert_eq!(missing.usage.output_tokens, estimate::text("One é "));
    let nulls = heard(&data(&[ONE, STOP, r#"{"choices":[],"usage":null}"#, "[DONE]"])).await.end.unwrap();
    assert_eq!(nulls, missing);
}

#[tokio::test]
async fn how_streams_end() {
    assert!(heard(&data(&[ONE, STOP])).await.end.is_ok(), "finished, without [DONE]");
    assert!(heard(&data(&[ONE, "[DONE]"])).await.end.is_ok(), "[DONE], without finish_reason");
    let cut = heard(&data(&[ROLE, ONE])).await;
    assert_eq!((cut.text.as_str(), cut.end.is_err()), ("One é ", true), "neither");
    let half = format!("{}data: {}", data(&[ONE]), &TWO[..TWO.len() / 2]);
    assert!(heard(&half).await.end.unwrap_err().contains("connection"), "half a piece");
    let error = data(&[ONE, r#"{"error":{"message":"secret words","code":502}}"#]);
    let told = heard(&error).await.end.unwrap_err();
    assert!(told.contains("failure") && !told.contains("secret"), "{told}");
    let named = format!("{}event: error\ndata: {{\"message\":\"x\"}}\n\n", data(&[ONE]));
    assert!(heard(&named).await.end.is_err(), "an event named error");
    assert!(heard(&data(&[ONE, "{broken"])).await.end.is_err(), "no JSON");
    let overlong = format!("{}data: {}\n\n", data(&[ONE]), "x".repeat(2 << 20));
    assert!(heard(&overlong).await.end.unwrap_err().contains("can't be read"), "a line without bound");
    let other = STOP.replace("\"index\":0", "\"index\":1");
    let begun = ONE.replace("\"index\":0", "\"index\":1");
    assert!(heard(&data(&[ONE, &begun, STOP])).await.end.is_err(), "one of two choices unfinished");
    assert!(heard(&data(&[ONE, &begun, STOP, &other])).await.end.is_ok(), "both finished");
}

#[tokio::test]
async fn a_broken_connection_cuts_a_stream_that_has_begun() {
    let script = vec![chunked_head(), chunk(&data(&[ONE])), Act::Close];
    assert!(hear(ask(script, true).await.ok().unwrap()).await.end.is_err());
    let script = vec![chunked_head(), chunk(&data(&[ONE, STOP, USAGE])), Act::Close];
    assert_eq!(hear(ask(script, true).await.ok().unwrap()).await.end, Ok(REPORTED), "after finish_reason");
    let go = Arc::new(Notify::new());
    let script = vec![chunked_head(), chunk(&data(&[ONE])), Act::Wait(Arc::clone(&go)), Act::Reset];
    let answer = ask(script, true).await.ok().unwrap();
    go.notify_one();
    let cut = hear(answer).await;
    assert_eq!((cut.text.as_str(), cut.end.is_err()), ("One é ", true));
}

#[tokio::test]
async fn before_the_first_piece_everything_is_a_failure() {
    let begun = |objects: &[&str]| stream(&[&data(objects)]);
    assert_eq!(refused(begun(&[ROLE]), true).await, Failure::Connection);
    assert_eq!(refused(vec![stream_head(), Act::Close], true).await, Failure::Connection);
    assert_eq!(refused(vec![Act::Reset], true).await, Failure::Connection);
    assert_eq!(
        refused(vec![chunked_head(), chunk(&data(&[ROLE])), Act::Reset], true).await,
        Failure::Connection
    );
    assert!(matches!(refused(begun(&[ROLE, "[DONE]"]), true).await, Failure::Garbled(_)));
    assert!(matches!(refused(begun(&["nonsense"]), true).await, Failure::Garbled(_)));
    assert!(matches!(refused(stream(&["data: ", &"x".repeat(2 << 20)]), true).await, Failure::Garbled(_)));
    let empty: Vec<&str> = vec![ROLE; 20_000];
    assert!(matches!(refused(begun(&empty), true).await, Failure::Garbled(_)), "role chunks without bound");
    let error = r#"{"error":{"message":"busy","code":429}}"#;
    assert_eq!(status(&refused(begun(&[error]), true).await), 429);
    assert_eq!(status(&refused(begun(&[ROLE, error]), true).await), 429);
    for streamed in [true, false] {
        assert_eq!(status(&refused(answer(200, &[], error), streamed).await), 429, "with status 200");
        let html = answer(200, &["Content-Type: text/html"], "<!doctype html><p>Hello");
        assert!(matches!(refused(html, streamed).await, Failure::Garbled(_)));
        let moved = answer(302, &["Location: http://127.0.0.1:1/"], "");
        assert!(matches!(refused(moved, streamed).await, Failure::Garbled(_)));
        let other = answer(200, &[], r#"{"hello":1}"#);
        assert!(matches!(refused(other, streamed).await, Failure::Garbled(_)));
    }
}

#[tokio::test]
async fn thoughts_tool_calls_and_ends_count_as_first_pieces() {
    let piece = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    for first in [
        piece(r#"{"reasoning_content":"Hm"}"#),
        piece(r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}"#),
        STOP.to_owned(),
    ] {
        let script = vec![chunked_head(), chunk(&data(&[ROLE, &first])), Act::Hang];
        let answer = ask(script, true).await.map_err(|e| format!("{first}: {e:?}")).unwrap();
        let UpstreamBody::Stream(events, _) = answer.body else { panic!("a stream") };
        assert_eq!(events.take(2).count().await, 2, "the role is passed on, and {first}");
    }
}

#[tokio::test]
async fn pieces_are_passed_on_at_once_and_the_tally_knows_them() {
    let go = Arc::new(Notify::new());
    let script = vec![
        chunked_head(),
        chunk(&data(&[ROLE])),
        chunk(&data(&[ONE])),
        Act::Wait(go),
        chunk(&data(&[TWO])),
        Act::Hang,
    ];
    let answer = ask(script, true).await.ok().unwrap();
    let UpstreamBody::Stream(events, tally) = answer.body else { panic!("a stream") };
    let first: Vec<Event> = events.take(2).collect().await;
    assert!(matches!(&first[1], Event::Piece(piece) if piece.text == "One é "));
    // The stream is dropped by now; its usage is still known.
    assert_eq!(tally.step().usage.output_tokens, estimate::text("One é "));
    assert_eq!(tally.step().estimated, tally.step().usage);
}

#[tokio::test]
async fn json_where_a_stream_was_asked_for_becomes_one() {
    let whole = r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"All of it"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
    for headers in [&["Content-Type: application/json"], &["Content-Type: text/event-stream"]] {
        let heard = hear(ask(answer(200, headers, whole), true).await.ok().unwrap()).await;
        assert_eq!((heard.text.as_str(), heard.pieces.len(), heard.end), ("All of it", 3, Ok(REPORTED)));
    }
}

#[tokio::test]
async fn a_stream_where_a_whole_answer_was_asked_for_becomes_one() {
    let got = ask(stream(&[&whole_stream()]), false).await.ok().unwrap();
    let UpstreamBody::Whole { completion, step, .. } = got.body else { panic!("whole") };
    assert_eq!((&completion["choices"][0]["message"]["content"], step), (&json!("One é 漢🦀"), REPORTED));
    assert_eq!(completion["object"], "chat.completion");
    assert_eq!(refused(stream(&[&data(&[ROLE, ONE])]), false).await, Failure::Connection, "cut");
}

#[tokio::test]
async fn a_whole_answer_is_passed_on_as_it_is() {
    let whole = "\n {\"id\":\"c\", \"choices\":[{\"message\":{\"content\":\"H\\u0069 \\ud83d\"}}],\"odd\":[1.0, 12345678901234567890123],\
                 \"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7}}\n";
    let script = answer(200, &["x-ratelimit-limit-requests: 50", "x-request-id: req_7"], whole);
    let got = ask(script, false).await.ok().unwrap();
    assert_eq!(got.limits.requests.limit, Some(50));
    assert_eq!(got.request_id.unwrap(), "req_7");
    let UpstreamBody::Whole { completion, text, step } = got.body else { panic!("whole") };
    assert_eq!(completion["choices"][0]["message"]["content"], "Hi \u{fffd}");
    assert_eq!((&*text, step), (whole.as_bytes(), REPORTED));

    let UpstreamBody::Whole { step, .. } =
        ask(answer(200, &[], r#"{"choices":[{"message":{"content":"Hi there"}}],"usage":null}"#), false)
            .await
            .ok()
            .unwrap()
            .body
    else {
        panic!("whole")
    };
    assert_eq!(
        step,
        StepUsage::estimated(Usage { input_tokens: estimate::input(&request(false)), output_tokens: 2 })
    );
}

#[tokio::test]
async fn a_cut_answer_is_a_lost_connection() {
    let half = r#"{"choices":[{"message":{"con"#;
    let short = format!("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{half}");
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{half}");
    for text in [short, endless] {
        assert_eq!(refused(vec![Act::Send(text.into_bytes()), Act::Close], false).await, Failure::Connection);
    }
    assert_eq!(refused(answer(200, &[], ""), false).await, Failure::Connection);
    let large =
        vec![Act::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Act::Send(vec![b' '; 33 << 20]), Act::Close];
    assert!(matches!(refused(large, false).await, Failure::Garbled(_)));
}

#[tokio::test]
async fn refusals_say_when_to_come_back_and_what_is_wrong() {
    let body =
        r#"{"error":{"message":"slow down, sk-secret","type":"requests","code":"rate_limit_exceeded"}}"#;
    let headers = ["Retry-After: 3", "x-ratelimit-reset-requests: 1s", "x-ratelimit-reset-tokens: 6m0s"];
    assert_eq!(
        refused(answer(429, &headers, body), true).await,
        Failure::Status {
            status: 429,
            retry_after_ms: Some(3_000),
            reset_ms: Some(360_000),
            message: None,
            code: Some("rate_limit_exceeded".into()),
            param: None,
        }
    );
    let dated = answer(503, &["Retry-After: Sun, 20 Sep 2026 10:00:09 GMT"], "<html>");
    let Failure::Status { retry_after_ms, .. } = refused(dated, false).await else { panic!("a status") };
    assert_eq!(retry_after_ms, Some(9_000), "by the clock that was handed in");
    let Failure::Status { message, .. } = refused(answer(400, &[], body), false).await else {
        panic!("a status")
    };
    assert_eq!(message.as_deref(), Some("slow down, …"), "the key is nobody's to read");
    // The body of an error that never comes doesn't hide its status.
    let cut = vec![Act::Send(b"HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\n{".to_vec()), Act::Close];
    assert_eq!(status(&refused(cut, false).await), 500);
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let (short, long) = (Duration::from_millis(80), Duration::from_secs(30));
    let go = |client: WireClient, script: Script, streamed: bool| async move {
        let server = Scripted::start(script).await;
        client.send(&endpoint(&server), "m", &request(streamed)).await
    };
    for streamed in [true, false] {
        let got = go(patient(short, long), vec![Act::Hang], streamed).await;
        assert_eq!(got.err(), Some(Failure::Timeout), "no head");
    }
    let comments = || {
        (0..200)
            .flat_map(|_| [Act::Pause(Duration::from_millis(10)), chunk(": wait\n\n")])
            .collect::<Vec<_>>()
    };
    let waiting = [vec![chunked_head()], comments()].concat();
    assert_eq!(go(patient(short, long), waiting, true).await.err(), Some(Failure::Timeout), "comments alone");
    let role = vec![chunked_head(), chunk(&data(&[ROLE])), Act::Hang];
    assert_eq!(go(patient(short, short), role, true).await.err(), Some(Failure::Timeout), "a role alone");
    let half = vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{".to_vec()), Act::Hang];
    assert_eq!(go(patient(long, short), half, false).await.err(), Some(Failure::Timeout), "half an answer");

    let begun = [vec![chunked_head(), chunk(&data(&[ONE]))], comments()].concat();
    let cut = hear(go(patient(long, short), begun, true).await.ok().unwrap()).await;
    assert!(cut.end.unwrap_err().contains("silent"), "comments don't keep a stream alive");
    let ended = vec![chunked_head(), chunk(&data(&[ONE, STOP, USAGE])), Act::Hang];
    let ended = hear(go(patient(long, short), ended, true).await.ok().unwrap()).await;
    assert_eq!(ended.end, Ok(REPORTED), "after finish_reason silence is the end");
}

#[tokio::test]
async fn a_connection_is_used_again() {
    // In one write, so that the end of the body is there with its last event.
    let parts = [chunked_head(), chunk(&whole_stream()), chunk("")];
    let bytes = parts.into_iter().flat_map(|act| match act {
        Act::Send(bytes) => bytes,
        _ => Vec::new(),
    });
    let script = vec![Act::Send(bytes.collect())];
    let server = Scripted::start(script).await;
    let client = client();
    for _ in 0..3 {
        hear(client.send(&endpoint(&server), "m", &request(true)).await.unwrap()).await;
        // Lets the reading-on after [DONE] come to the body's end.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }
    let connections: Vec<usize> = server.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [0, 0, 0]);
}

#[tokio::test]
async fn nothing_to_speak_to_and_nothing_to_speak_with() {
    let nowhere = Endpoint { base_url: "http://127.0.0.1:9/v1".into(), key: None };
    assert_eq!(client().send(&nowhere, "m", &request(true)).await.err(), Some(Failure::Connection));
    let nonsense = Endpoint { base_url: "not a url".into(), key: None };
    assert_eq!(client().send(&nonsense, "m", &request(true)).await.err(), Some(Failure::Connection));
    let unspeakable = Endpoint { base_url: "http://127.0.0.1:9/v1".into(), key: Some(Secret::new("a\nb")) };
    assert_eq!(status(&client().send(&unspeakable, "m", &request(true)).await.err().unwrap()), 401);
    assert!(!format!("{unspeakable:?}").contains("a\nb") && format!("{unspeakable:?}").contains("Secret(…)"));
}
