//! Callers that leave, and callers that don't read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::scripted::{Act, Script, Scripted, stream_head};
use crate::site::{Site, site};

/// A stream that was asked for.
async fn ask(site: &Site) -> TcpStream {
    let body = r#"{"model":"default","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        site.key,
        body.len()
    );
    let mut stream = TcpStream::connect(site.address).await.expect("a connection");
    stream.write_all((head + body).as_bytes()).await.expect("sent");
    stream
}

/// Waits until it holds, which has to be soon.
async fn soon(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..100 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within five seconds: {what}");
}

fn event(object: &str) -> Act {
    Act::Send(format!("data: {object}\n\n").into_bytes())
}

/// Twenty words in a second, then what they cost.
fn second_of_words() -> Script {
    let word = || {
        [
            event(r#"{"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}"#),
            Act::Pause(Duration::from_millis(50)),
        ]
    };
    let end = [
        event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#),
        event(r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#),
        event("[DONE]"),
        Act::Close,
    ];
    [stream_head()].into_iter().chain((0..20).flat_map(|_| word())).chain(end).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_are_left_are_charged_and_leave_nothing_behind() {
    const STREAMS: usize = 200;
    let provider = Scripted::start(second_of_words()).await;
    let site = Arc::new(site(&provider.base_url()).await);
    // Once to its end, so that everything that stays is there.
    let mut whole = Vec::new();
    let mut stream = ask(&site).await;
    while !String::from_utf8_lossy(&whole).contains("[DONE]") {
        assert_ne!(stream.read_buf(&mut whole).await.unwrap(), 0, "{}", String::from_utf8_lossy(&whole));
    }
    drop(stream);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    soon("the first stream's tasks end", async || tasks() < 30).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = tasks();

    let callers: Vec<_> = (0..STREAMS)
        .map(|_| {
            let site = site.clone();
            tokio::spawn(async move {
                let mut stream = ask(&site).await;
                let leaves_after = Duration::from_millis(rand::rng().random_range(0..1200));
                let mut sink = [0; 4096];
                let reading = async { while stream.read(&mut sink).await.is_ok_and(|n| n > 0) {} };
                let _ = tokio::time::timeout(leaves_after, reading).await;
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    // Those that left before their request was read never called the provider.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let called = i64::try_from(provider.requests().len()).unwrap();
    assert!(called > 150, "{called}");
    soon("every call is charged as reported", async || {
        site.charged().await == (called, called * 11, called * 7, 0)
    })
    .await;
    soon("all tasks have ended", async || tasks() <= before).await;
    assert!(site.services.pool.status().iter().all(|row| row.in_flight == 0));
}

/// A provider that has a lot to say; how much of it has gone out, in bytes.
async fn talkative(megabytes: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a call");
        let _ = socket.read(&mut [0; 4096]).await;
        let words = "x".repeat(8 << 10);
        let piece =
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{words}\"}}}}]}}\n\n");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).await.expect("the head");
        for _ in 0..(megabytes << 20) / piece.len() {
            socket.write_all(piece.as_bytes()).await.expect("read on");
            count.fetch_add(piece.len(), Ordering::Relaxed);
        }
        let end = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";
        socket.write_all(end.as_bytes()).await.expect("the end");
    });
    (url, sent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_holds_the_provider_back_until_they_leave() {
    const MEGABYTES: usize = 64;
    let (url, sent) = talkative(MEGABYTES).await;
    let site = site(&url).await;
    let mut reader = ask(&site).await;
    reader.read_exact(&mut [0; 64]).await.unwrap();
    let mut last = 0;
    soon("the provider waits", async || {
        tokio::time::sleep(Duration::from_millis(300)).await;
        std::mem::replace(&mut last, sent.load(Ordering::Relaxed)) == sent.load(Ordering::Relaxed)
    })
    .await;
    // What the sockets' own buffers hold is not ours.
    assert!(last < MEGABYTES << 19, "{last} bytes went somewhere");
    assert_eq!(site.charged().await.0, 0);

    drop(reader);
    soon("the rest is read and charged", async || site.charged().await == (1, 11, 7, 0)).await;
}
