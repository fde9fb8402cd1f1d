//! Checks the code that goes into the browser, for its target: that no part of the server has slipped
//! into it shows nowhere else.

use crate::toolchain::{TARGET, Toolchain};
use crate::{Result, run, workspace_root};

/// Packages with their features, as the bundle has them.
const PACKAGES: &[&[&str]] =
    &[&["--package", "tollkeeper", "--lib", "--no-default-features"], &["--package", "front"]];

pub(crate) fn check() -> Result<()> {
    let root = workspace_root()?;
    let toolchain = Toolchain::find()?;
    for package in PACKAGES {
        let mut command = toolchain.cargo(toolchain.check_verb());
        command
            .args(*package)
            .args(["--target", TARGET, "--locked", "--target-dir"])
            .arg(toolchain.target_dir(&root))
            // The way to be strict that both verbs share.
            .env("RUSTFLAGS", "-D warnings")
            .current_dir(&root);
        run(&mut command, "cargo")?;
    }
    Ok(())
}
