//! A PostgreSQL that goes away and comes back, as a machine, a network or an upgrade makes it: a proxy
//! between the store and a real one. For tests.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Up,
    /// Connections stand, and nothing passes: a stopped process, a network that swallows packets.
    Hung,
    /// Connections are cut, and new ones too.
    Gone,
    /// The next COMMIT reaches the server; instead of its answer the connection is cut.
    LosesCommit,
}

pub(crate) struct Flaky {
    state: watch::Sender<State>,
    pub(crate) address: SocketAddr,
}

impl Flaky {
    /// In front of the server at `host:port`.
    pub(crate) async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, watch) = watch::channel(State::Up);
        let changes = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, changes, watch) = (server.clone(), changes.clone(), watch.clone());
                tokio::spawn(async move {
                    if *watch.borrow() == State::Gone {
                        return;
                    }
                    let server = TcpStream::connect(server).await.unwrap();
                    pass(client, server, changes, watch).await;
                });
            }
        });
        Self { state, address }
    }

    pub(crate) fn set(&self, state: State) {
        self.state.send_replace(state);
    }

    pub(crate) fn is(&self, state: State) -> bool {
        *self.state.borrow() == state
    }
}

async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    changes: watch::Sender<State>,
    mut watch: watch::Receiver<State>,
) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let state = *watch.borrow_and_update();
        let open = state != State::Hung;
        tokio::select! {
            _ = watch.changed() => {
                if *watch.borrow() == State::Gone {
                    return;
                }
            }
            read = client.read(&mut asked), if open => {
                let Ok(length @ 1..) = read else { return };
                let bytes = &asked[..length];
                if server.write_all(bytes).await.is_err() {
                    return;
                }
                if state == State::LosesCommit && bytes.windows(6).any(|word| word == b"COMMIT") {
                    // The answer says that it is committed; nobody else hears it.
                    let _ = server.read(&mut answered).await;
                    changes.send_replace(State::Up);
                    return;
                }
            }
            read = server.read(&mut answered), if open => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
