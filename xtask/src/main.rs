//! Build chores that cargo alone can't do: `cargo xtask bundle` makes what the browser loads, `cargo xtask
//! lint` checks the code that goes there.

mod bundle;
mod compress;
mod fingerprint;
mod lint;
mod toolchain;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use bundle::Mode;

const USAGE: &str = "usage: cargo xtask bundle [--release | --dev]\n       cargo xtask lint";

type Error = Box<dyn std::error::Error>;
type Result<T> = std::result::Result<T, Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, outcome) = match arguments[..] {
        ["bundle"] | ["bundle", "--release"] => ("bundle", bundle::make(Mode::Release)),
        ["bundle", "--dev"] => ("bundle", bundle::make(Mode::Dev)),
        ["lint"] => ("lint", lint::check()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn workspace_root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().ok_or("xtask lies in no workspace")?.to_owned())
}

fn run(command: &mut Command, name: &str) -> Result<()> {
    let status = command.status().map_err(|error| format!("{name} can't be run: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})").into()) }
}
