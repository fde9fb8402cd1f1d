//! A Redis server of a test's own, and ways to hurt it.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{Client, FromRedisValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Redis, RedisUrl};
use crate::clock::ManualClock;
use crate::model::Timestamp;

pub(crate) struct Server {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        // Another process may take the port between the two steps.
        for _ in 0..10 {
            if let Some(server) = Self::spawn(free_port()).await {
                return server;
            }
        }
        panic!("redis-server does not start");
    }

    pub(crate) async fn start_at(port: u16) -> Self {
        Self::spawn(port).await.expect("the port was free a moment ago")
    }

    async fn spawn(port: u16) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self { child: spawn(port, &folder), port, folder };
        server.answers().await.then_some(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> RedisUrl {
        url(self.port)
    }

    /// A connection that waits for its answers, however busy the machine is: for tests of what is decided.
    pub(crate) async fn connect(&self) -> Redis {
        let clock = ManualClock::new(Timestamp(0));
        Redis::start_with(&self.url(), clock, Duration::from_secs(10)).await.unwrap()
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it anew, at the same address and empty.
    pub(crate) async fn restart(&mut self) {
        self.child = spawn(self.port, &self.folder);
        assert!(self.answers().await);
    }

    /// It keeps its connections and says nothing any more.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        self.try_ask(command).await.unwrap()
    }

    async fn try_ask<T: FromRedisValue>(&self, command: &str) -> redis::RedisResult<T> {
        let client = Client::open(format!("redis://127.0.0.1:{}", self.port)).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut words = command.split(' ');
        let mut asked = redis::cmd(words.next().unwrap());
        asked.arg(words.collect::<Vec<_>>());
        asked.query_async(&mut connection).await
    }

    /// Fails where any key would stay for ever.
    pub(crate) async fn assert_all_keys_expire(&self) {
        let keys: Vec<String> = self.ask("KEYS *").await;
        for key in &keys {
            let ttl: i64 = self.ask(&format!("PTTL {key}")).await;
            // -2: gone since.
            assert!(ttl != -1, "{key} does not expire");
        }
    }

    async fn answers(&mut self) -> bool {
        for _ in 0..500 {
            if self.try_ask::<String>("PING").await.is_ok() {
                return self.child.try_wait().unwrap().is_none();
            }
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn url(port: u16) -> RedisUrl {
    RedisUrl::parse(&format!("redis://127.0.0.1:{port}")).unwrap()
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(port: u16, folder: &tempfile::TempDir) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed; xtask/setup.sh does that")
}

/// Waits until it holds, for some seconds at most.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

/// A way to a server on which every answer takes some time.
pub(crate) struct SlowWay {
    pub port: u16,
    delay_ms: Arc<AtomicU64>,
}

impl SlowWay {
    pub(crate) async fn to(server: &Server) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, to) = (listener.local_addr().unwrap().port(), server.port);
        let delay_ms: Arc<AtomicU64> = Arc::default();
        let delay = delay_ms.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)).await else { continue };
                let (mut near_read, mut near_write) = near.into_split();
                let (mut far_read, mut far_write) = far.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut near_read, &mut far_write).await });
                let delay = delay.clone();
                tokio::spawn(async move {
                    let mut piece = [0; 16_384];
                    while let Ok(n @ 1..) = far_read.read(&mut piece).await {
                        tokio::time::sleep(Duration::from_millis(delay.load(Ordering::SeqCst))).await;
                        if near_write.write_all(&piece[..n]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { port, delay_ms }
    }

    pub(crate) fn delay_ms(&self, ms: u64) {
        self.delay_ms.store(ms, Ordering::SeqCst);
    }
}
