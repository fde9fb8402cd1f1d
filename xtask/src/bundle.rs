//! What the browser loads: the pages compiled to wasm with their glue script, and the stylesheet, under
//! names that carry their content's digest, each with compressed copies. The server's build puts the
//! folder into the binary (`app/build.rs`).
//!
//! Two digests in the manifest keep a repeated call cheap: one over everything that is read (the same:
//! nothing to do), one over the compiler's wasm (the same: only the stylesheet is made anew).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use wasm_bindgen_cli_support::Bindgen;

use crate::compress::{self, Effort};
use crate::fingerprint;
use crate::toolchain::{TARGET, Toolchain};
use crate::{Result, run, workspace_root};

const NAME: &str = "tollkeeper";

/// All that can change the bundle. `src` is here for the part of it that the browser shares.
const INPUTS: &[&str] = &[
    ".cargo/config.toml",
    "Cargo.lock",
    "Cargo.toml",
    "app/Cargo.toml",
    "app/front",
    "app/src",
    "src/lib.rs",
    "src/model",
    "style",
    "xtask/package-lock.json",
    "xtask/src",
];

/// The stylesheet's layers, weakest first. They decide what wins, so the files' order doesn't matter.
const LAYERS: &str = "@layer tokens, base, parts, pages;\n";

const WASM_OPT_FLAGS: &[&str] = &[
    "-Oz",
    "--enable-bulk-memory",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-multivalue",
];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    /// What is shipped: smallest.
    Release,
    /// Compiled and compressed quickly, several times as large.
    Dev,
}

impl Mode {
    fn profile(self) -> &'static str {
        match self {
            Self::Release => "wasm-release",
            Self::Dev => "wasm-dev",
        }
    }

    fn effort(self) -> Effort {
        match self {
            Self::Release => Effort::Best,
            Self::Dev => Effort::Quick,
        }
    }
}

/// `target/site/manifest.json`. The server reads `js`, `wasm` and `css`, paths below the folder.
#[derive(Deserialize, Serialize)]
struct Manifest {
    js: String,
    wasm: String,
    css: String,
    /// Digest of everything read.
    inputs: String,
    /// Digest of the compiler's output and of what is done to it.
    compiled: String,
}

pub(crate) fn make(mode: Mode) -> Result<()> {
    let root = workspace_root()?;
    let site = root.join("target/site");
    let inputs = fingerprint::of_files(&root, INPUTS, mode.profile())?;
    let old = read_manifest(&site);
    if old.as_ref().is_some_and(|old| old.inputs == inputs) {
        return Ok(());
    }

    let compiled_wasm = compile(&root, mode)?;
    let compiled =
        fingerprint::of_files(&root, &["xtask/package-lock.json", "xtask/src"], &digest_of(&compiled_wasm)?)
            .map(|digest| format!("{}-{digest}", mode.profile()))?;
    let kept = old.filter(|old| old.compiled == compiled);

    // Without its manifest a half-made folder counts as none.
    remove_if_there(&site.join("manifest.json"))?;
    let pkg = site.join("pkg");
    let (js, wasm) = if let Some(kept) = kept {
        remove_if_there(&site.join(&kept.css))?;
        for copy in ["br", "gz"] {
            remove_if_there(&site.join(format!("{}.{copy}", kept.css)))?;
        }
        (kept.js, kept.wasm)
    } else {
        if site.exists() {
            fs::remove_dir_all(&site)?;
        }
        fs::create_dir_all(&pkg)?;
        bind(&root, &compiled_wasm, &pkg, mode)?
    };
    let css = place(&pkg, "css", stylesheet(&root)?.as_bytes(), mode)?;

    let manifest = Manifest { js, wasm, css, inputs, compiled };
    fs::write(site.join("manifest.json"), serde_json::to_string_pretty(&manifest)?)?;
    report(&site, &manifest)
}

fn read_manifest(site: &Path) -> Option<Manifest> {
    serde_json::from_slice(&fs::read(site.join("manifest.json")).ok()?).ok()
}

fn compile(root: &Path, mode: Mode) -> Result<PathBuf> {
    let toolchain = Toolchain::find()?;
    let target_dir = toolchain.target_dir(root);
    eprintln!("bundle: compiling the pages for the browser ({})", mode.profile());
    let mut command = toolchain.cargo("build");
    command
        .args(["--package", "front", "--target", TARGET, "--profile", mode.profile(), "--locked"])
        .arg("--target-dir")
        .arg(&target_dir)
        .current_dir(root);
    run(&mut command, "cargo")?;
    Ok(target_dir.join(TARGET).join(mode.profile()).join("front.wasm"))
}

/// Makes the glue script, shrinks the wasm, and gives both their names.
fn bind(root: &Path, compiled: &Path, pkg: &Path, mode: Mode) -> Result<(String, String)> {
    let scratch = root.join("target/bindgen");
    remove_folder_if_there(&scratch)?;
    eprintln!("bundle: binding");
    Bindgen::new()
        .input_path(compiled)
        .out_name(NAME)
        .web(true)?
        .typescript(false)
        // The page names the wasm itself, since the name carries a digest.
        .omit_default_module_path(true)
        .remove_producers_section(true)
        .generate(&scratch)?;
    if scratch.join("snippets").exists() {
        return Err("a dependency brings script snippets, which the bundle has no place for yet".into());
    }
    let wasm_file = scratch.join(format!("{NAME}_bg.wasm"));
    if matches!(mode, Mode::Release) {
        shrink(root, &wasm_file)?;
    }
    let js = place(pkg, "js", &fs::read(scratch.join(format!("{NAME}.js")))?, mode)?;
    let wasm = place(pkg, "wasm", &fs::read(&wasm_file)?, mode)?;
    Ok((js, wasm))
}

fn shrink(root: &Path, wasm: &Path) -> Result<()> {
    let program = wasm_opt(root)?;
    eprintln!("bundle: shrinking");
    let mut command = Command::new(program);
    command.args(WASM_OPT_FLAGS).arg(wasm).arg("--output").arg(wasm);
    run(&mut command, "wasm-opt")
}

/// From npm and of a fixed version: distributions carry ones too old for today's wasm, which fail or,
/// worse, write a module that dies in the browser.
fn wasm_opt(root: &Path) -> Result<PathBuf> {
    let folder = root.join("xtask");
    let program = folder.join("node_modules/.bin/wasm-opt");
    if !is_newer(&folder.join("node_modules/.package-lock.json"), &folder.join("package-lock.json")) {
        eprintln!("bundle: fetching wasm-opt");
        run(Command::new("npm").args(["ci", "--silent"]).current_dir(&folder), "npm")?;
    }
    Ok(program)
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    modified(file).zip(modified(than)).is_some_and(|(file, than)| file >= than)
}

fn stylesheet(root: &Path) -> Result<String> {
    let mut sheet = LAYERS.to_owned();
    for file in fingerprint::files_under(&root.join("style"))? {
        if file.extension().is_some_and(|extension| extension == "css") {
            sheet.push_str(&fs::read_to_string(&file)?);
        }
    }
    Ok(sheet)
}

/// Writes `pkg/NAME.DIGEST.EXTENSION` and its compressed copies; the path below the site's folder.
fn place(pkg: &Path, extension: &str, bytes: &[u8], mode: Mode) -> Result<String> {
    let name = format!("{NAME}.{}.{extension}", fingerprint::of_bytes(bytes));
    let file = pkg.join(&name);
    fs::write(&file, bytes)?;
    compress::beside(&file, mode.effort())?;
    Ok(format!("pkg/{name}"))
}

fn report(site: &Path, manifest: &Manifest) -> Result<()> {
    for name in [&manifest.js, &manifest.wasm, &manifest.css] {
        let plain = fs::metadata(site.join(name))?.len();
        let brotli = fs::metadata(site.join(format!("{name}.br")))?.len();
        eprintln!("bundle: {name}, {plain} bytes, {brotli} with brotli");
    }
    Ok(())
}

fn digest_of(file: &Path) -> Result<String> {
    Ok(fingerprint::of_bytes(&fs::read(file)?))
}

fn remove_if_there(file: &Path) -> Result<()> {
    if file.exists() {
        fs::remove_file(file)?;
    }
    Ok(())
}

fn remove_folder_if_there(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}
