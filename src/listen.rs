//! Takes connections, and bounds how long a client may dawdle and how much of it is kept.
//!
//! `axum::serve` has no such bounds. HTTP/1.1 alone: TLS and HTTP/2 are for a proxy in front.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// What a connection is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From a connection's begin, or the end of an answer, to the end of the next request's head: also how long an
    /// idle connection is kept. Longer than the minute that proxies commonly keep theirs, so that theirs end first.
    pub head: Duration,
    /// How long a client may read nothing of its answer while more waits to be sent.
    pub write: Duration,
    /// How long answers under way may take when the server stops.
    pub stop: Duration,
    /// Connections that are held at once. More wait to be taken until one of these ends.
    pub connections: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(75),
            write: Duration::from_mins(1),
            stop: Duration::from_secs(10),
            connections: 16_384,
        }
    }
}

/// A request's line and headers, and what is kept of an answer that its reader is slow to take, in bytes.
const BUFFER_MAX: usize = 64 << 10;
/// Where no connection can be taken (out of file descriptors), some may have ended by then.
const ACCEPT_AGAIN: Duration = Duration::from_millis(500);

/// Serves until `stop` is cancelled, and then until the answers under way are read.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken, patience: Patience) {
    let connections = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_buf_size(BUFFER_MAX)
        .max_header_size(BUFFER_MAX);
    let places = Arc::new(Semaphore::new(patience.connections));
    while let Some((place, stream, peer)) = stop.run_until_cancelled(accept(&places, &listener)).await {
        // Pieces of a stream are small and are not to wait for each other.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(patience.write));
        let router = router.clone();
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        let connection = connections.watch(http.serve_connection(TokioIo::new(Box::pin(stream)), service));
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    // A caller that reads slowly must not keep the process from ending.
    let _ = tokio::time::timeout(patience.stop, connections.shutdown()).await;
}

async fn accept(
    places: &Arc<Semaphore>,
    listener: &TcpListener,
) -> (OwnedSemaphorePermit, TcpStream, SocketAddr) {
    let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (place, stream, peer),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken; trying again");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::JoinHandle;

    use super::*;

    async fn served(patience: Patience) -> (TcpStream, CancellationToken, JoinHandle<()>) {
        let endless = || async {
            let piece = axum::body::Bytes::from(vec![b'x'; 1 << 16]);
            Body::from_stream(futures::stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone())))
        };
        let slow = || async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            "slow"
        };
        let peer = get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.ip().to_string());
        let router = Router::new().route("/", peer).route("/endless", get(endless)).route("/slow", get(slow));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, router, stop.clone(), patience));
        (TcpStream::connect(address).await.unwrap(), stop, server)
    }

    fn quick() -> Patience {
        let short = Duration::from_millis(100);
        Patience { head: short, write: short, stop: Duration::from_secs(5), connections: 16 }
    }

    /// What comes until the server hangs up, which it has to do soon.
    async fn rest(stream: &mut TcpStream) -> String {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes)).await;
        // A connection that is reset has ended, too.
        let _ = read.expect("the server hangs up");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[tokio::test]
    async fn a_client_that_does_not_finish_its_head_is_hung_up_on() {
        let (mut client, ..) = served(quick()).await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
        assert_eq!(rest(&mut client).await, "");
    }

    #[tokio::test]
    async fn one_connection_too_many_waits_until_another_ends() {
        let (mut first, stop, server) = served(Patience { connections: 1, ..Patience::default() }).await;
        first.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        first.read_exact(&mut [0; 12]).await.unwrap();
        let mut second = TcpStream::connect(first.peer_addr().unwrap()).await.unwrap();
        second.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(200), second.peek(&mut [0; 1])).await;
        assert!(early.is_err(), "it is not served beside the first");
        drop(first);
        assert!(rest(&mut second).await.ends_with("127.0.0.1"));
        stop.cancel();
        server.await.unwrap();
    }

    #[tokio::test]
    async fn an_idle_connection_ends() {
        let (mut client, ..) = served(quick()).await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert!(rest(&mut client).await.ends_with("127.0.0.1"));
    }

    #[tokio::test]
    async fn a_head_without_bound_is_refused() {
        let (mut client, ..) = served(Patience::default()).await;
        let head = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(BUFFER_MAX));
        let _ = client.write_all(head.as_bytes()).await;
        assert!(rest(&mut client).await.starts_with("HTTP/1.1 431"));
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_hung_up_on() {
        let (mut client, stop, server) = served(quick()).await;
        client.write_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        client.read_exact(&mut [0; 12]).await.unwrap();
        stop.cancel();
        // It holds on to its connection, and yet the server doesn't wait for it.
        tokio::time::timeout(Duration::from_secs(4), server)
            .await
            .expect("the connection has ended")
            .unwrap();
        drop(client);
    }

    #[tokio::test]
    async fn what_is_under_way_is_answered_when_the_server_stops() {
        let (mut client, stop, server) = served(Patience::default()).await;
        client.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        stop.cancel();
        assert!(rest(&mut client).await.ends_with("slow"));
        server.await.unwrap();
    }
}
