//! The binary: reads the command, runs it, and says how it went by the exit code.

mod commands;

use std::num::NonZero;
use std::process::ExitCode;
use std::thread;

use clap::Parser as _;
use clap::error::ErrorKind;
use commands::{Cli, Failure};

/// Rendering a page with resources waits on other tasks; with one worker it can wait for itself.
const FEWEST_WORKERS: usize = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return told(&error),
    };
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

/// Help and version as they were asked for; a fault in the arguments in one line, and with exit code 2.
fn told(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        eprintln!("tollkeeper: {}", in_one_line(&error.to_string()));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// clap's message goes up to its first empty line; then come usage and hints.
fn in_one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let lines = message.lines().take_while(|line| !line.trim().is_empty());
    let line: Vec<&str> = lines.map(str::trim).collect();
    format!("{}; --help says what is taken", line.join(" "))
}
