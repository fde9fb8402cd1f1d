//! The binary.

use std::num::NonZero;
use std::process::ExitCode;
use std::{env, io, thread};

use tokio::net::TcpListener;

/// Rendering a page with resources waits on other tasks; with one worker it can wait for itself.
const FEWEST_WORKERS: usize = 2;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tollkeeper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let workers = thread::available_parallelism()
        .map_or(FEWEST_WORKERS, NonZero::get)
        .max(FEWEST_WORKERS);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?
        .block_on(serve())
}

async fn serve() -> io::Result<()> {
    let address = env::var("TOLLKEEPER_ADDR").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(&address).await?;
    println!("Tollkeeper is on http://{}", listener.local_addr()?);
    axum::serve(listener, tollkeeper_app::server::pages(())).await
}
