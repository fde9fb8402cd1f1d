//! Build chores that cargo alone can't do. `cargo xtask bundle` makes what the browser loads.

mod bundle;
mod compress;
mod fingerprint;
mod toolchain;

use std::process::ExitCode;

use bundle::Mode;

const USAGE: &str = "usage: cargo xtask bundle [--release | --dev]";

type Error = Box<dyn std::error::Error>;
type Result<T> = std::result::Result<T, Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mode = match arguments[..] {
        ["bundle"] | ["bundle", "--release"] => Mode::Release,
        ["bundle", "--dev"] => Mode::Dev,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match bundle::make(mode) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bundle: {error}");
            ExitCode::FAILURE
        }
    }
}
