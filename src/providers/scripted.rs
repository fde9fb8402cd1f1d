//! A provider for tests that sends exactly the bytes it is told to, over a real socket, and keeps
//! what it was asked. It knows nothing of this crate, so integration tests can take it in by its path.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One thing that the server does while it answers.
#[derive(Clone)]
pub enum Act {
    Send(Vec<u8>),
    Pause(Duration),
    /// Goes on once the test says so.
    Wait(Arc<Notify>),
    /// Ends the connection properly.
    Close,
    /// Breaks the connection.
    Reset,
    /// Says nothing more until the client goes.
    Hang,
}

pub type Script = Vec<Act>;

/// What the server was asked.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Request line and headers.
    pub head: String,
    pub body: Vec<u8>,
    /// Which connection it came by, from 0.
    pub connection: usize,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    /// The body as JSON; null where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Default)]
struct State {
    scripts: VecDeque<Script>,
    default: Script,
    requests: Vec<Recorded>,
    connections: usize,
}

/// The server; it ends with the test's runtime.
pub struct Scripted {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Scripted {
    /// Answers every request with `default` until [`Scripted::next`] says otherwise.
    pub async fn start(default: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let state = Arc::new(Mutex::new(State { default, ..State::default() }));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let number = {
                    let mut state = shared.lock().expect("no panic with the lock");
                    state.connections += 1;
                    state.connections - 1
                };
                let _ = socket.set_nodelay(true);
                tokio::spawn(serve(socket, Arc::clone(&shared), number));
            }
        });
        Self { address, state }
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Adds to what the next requests are answered with, one script each.
    pub fn next(&self, script: Script) {
        self.state.lock().expect("no panic with the lock").scripts.push_back(script);
    }

    pub fn requests(&self) -> Vec<Recorded> {
        self.state.lock().expect("no panic with the lock").requests.clone()
    }
}

async fn serve(mut socket: TcpStream, state: Arc<Mutex<State>>, connection: usize) {
    let mut read = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut read, connection).await {
        let script = {
            let mut state = state.lock().expect("no panic with the lock");
            state.requests.push(request);
            state.scripts.pop_front().unwrap_or_else(|| state.default.clone())
        };
        for act in script {
            match act {
                Act::Send(bytes) => {
                    if socket.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::Pause(span) => tokio::time::sleep(span).await,
                Act::Wait(notify) => notify.notified().await,
                Act::Close => {
                    let _ = socket.shutdown().await;
                    return;
                }
                Act::Reset => {
                    let _ = socket.set_zero_linger();
                    return;
                }
                Act::Hang => {
                    let _ = socket.read(&mut [0; 1]).await;
                    return;
                }
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream, read: &mut Vec<u8>, connection: usize) -> Option<Recorded> {
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).into_owned();
            let mut request = Recorded { head, body: Vec::new(), connection };
            let length: usize = request.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
            if read.len() >= end + 4 + length {
                request.body = read[end + 4..end + 4 + length].to_vec();
                read.drain(..end + 4 + length);
                return Some(request);
            }
        }
        if socket.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
}

/// A whole answer with its length. `headers` are lines without their ends.
pub fn answer(status: u16, headers: &[&str], body: &str) -> Script {
    let mut text = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len());
    for part in headers.iter().flat_map(|line| [*line, "\r\n"]).chain(["\r\n", body]) {
        text.push_str(part);
    }
    vec![Act::Send(text.into_bytes())]
}

/// The head of a stream whose body ends with the connection.
pub fn stream_head() -> Act {
    Act::Send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_vec())
}

/// A stream in pieces as they stand, then the connection's proper end.
pub fn stream(parts: &[&str]) -> Script {
    let parts = parts.iter().map(|part| Act::Send(part.as_bytes().to_vec()));
    [stream_head()].into_iter().chain(parts).chain([Act::Close]).collect()
}

/// The head of a stream in HTTP chunks; [`chunk`]s follow, and an empty one ends it.
pub fn chunked_head() -> Act {
    Act::Send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
    )
}

pub fn chunk(text: &str) -> Act {
    Act::Send(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}
