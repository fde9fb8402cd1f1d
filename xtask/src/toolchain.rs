//! Which compiler makes the wasm: rustup's where its target can be had, else Debian's, which brings
//! the standard library as source and builds it along.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

pub(crate) enum Toolchain {
    Rustup,
    Debian,
}

impl Toolchain {
    /// The first that works, with rustup's target added if that is all that is missing.
    pub(crate) fn find() -> Result<Self> {
        if rustup_has_target() || (add_rustup_target() && rustup_has_target()) {
            Ok(Self::Rustup)
        } else if debian_has_source() {
            Ok(Self::Debian)
        } else {
            Err(format!(
                "no compiler for {TARGET}: `rustup target add {TARGET}` did not work, and Debian's packages \
                 rustc-web, cargo-web, rust-web-src and lld-22 are not installed. `./start` installs what it can."
            )
            .into())
        }
    }

    /// Where cargo puts what this compiler makes. Two compilers never share a folder.
    pub(crate) fn target_dir(&self, root: &Path) -> PathBuf {
        root.join(match self {
            Self::Rustup => "target/front",
            Self::Debian => "target/front-debian",
        })
    }

    /// `cargo VERB`, of this toolchain.
    pub(crate) fn cargo(&self, verb: &str) -> Command {
        match self {
            Self::Rustup => {
                let mut command = Command::new(own_cargo());
                command.arg(verb);
                command
            }
            Self::Debian => {
                let mut command = Command::new(DEBIAN_CARGO);
                command
                    .args([verb, "-Zbuild-std=std,panic_abort"])
                    .env("RUSTC", DEBIAN_RUSTC)
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "rust-lld")
                    // Set by the cargo that runs this program; they would lead back to its own toolchain.
                    .env_remove("CARGO")
                    .env_remove("RUSTUP_TOOLCHAIN");
                command
            }
        }
    }

    /// The strictest check that it has for this target: Debian's clippy is of another version.
    pub(crate) fn check_verb(&self) -> &'static str {
        match self {
            Self::Rustup => "clippy",
            Self::Debian => "check",
        }
    }
}

/// The cargo that runs this program.
fn own_cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

fn rustup_has_target() -> bool {
    output_of("rustc", &["--print", "target-libdir", "--target", TARGET])
        .is_some_and(|folder| Path::new(folder.trim()).is_dir())
}

fn add_rustup_target() -> bool {
    eprintln!("bundle: adding the compiler's target {TARGET}");
    Command::new("rustup").args(["target", "add", TARGET]).status().is_ok_and(|status| status.success())
}

fn debian_has_source() -> bool {
    Path::new(DEBIAN_CARGO).is_file()
        && output_of(DEBIAN_RUSTC, &["--print", "sysroot"])
            .is_some_and(|root| Path::new(root.trim()).join("lib/rustlib/src/rust/library/std").is_dir())
}

fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
