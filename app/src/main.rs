//! The binary: reads the command, runs it, and says how it went by the exit code.

mod commands;

use std::num::NonZero;
use std::process::ExitCode;
use std::thread;

use clap::Parser as _;
use commands::{Cli, Failure};

/// Rendering a page with resources waits on other tasks; with one worker it can wait for itself.
const FEWEST_WORKERS: usize = 2;

fn main() -> ExitCode {
    // Ends with exit code 2 where the arguments are wrong.
    let cli = Cli::parse();
    let workers = thread::available_parallelism().map_or(FEWEST_WORKERS, NonZero::get).max(FEWEST_WORKERS);
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("tollkeeper: the runtime can't be started: {error}");
                return ExitCode::FAILURE;
            }
        };
    match runtime.block_on(cli.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(why)) => {
            eprintln!("tollkeeper: {why}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage(faults)) => {
            for fault in faults {
                eprintln!("tollkeeper: {fault}");
            }
            ExitCode::from(2)
        }
    }
}
