//! Writes a table of the files to serve, the browser bundle and `public/`, whose bytes go into the
//! binary. Without a bundle the table has `public/` alone, and the pages come without script.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_SSR").is_none() {
        return Ok(());
    }
    let root = path_from("CARGO_MANIFEST_DIR")?;
    let public = root.join("../public");
    let site = root.join("../target/site");
    // Cargo takes a watched path that doesn't exist as changed, and would compile this package every time.
    fs::create_dir_all(&site)?;
    println!("cargo::rerun-if-changed={}", public.display());
    println!("cargo::rerun-if-changed={}", site.display());

    // A folder without a manifest is a bundle that is being made, or whose making failed.
    let manifest = site.join("manifest.json");
    let bundled = if manifest.is_file() { files_under(&site.join("pkg"))? } else { Vec::new() };

    let mut table = String::from("const FILES: &[Asset] = &[\n");
    for file in files_under(&public)? {
        add(&mut table, "", &public, &file)?;
    }
    for file in bundled {
        add(&mut table, "pkg/", &site.join("pkg"), &file)?;
    }
    table.push_str("];\n");
    let manifest = manifest.is_file().then(|| fs::read_to_string(&manifest)).transpose()?;
    writeln!(table, "const MANIFEST: Option<&str> = {manifest:?};").map_err(io::Error::other)?;
    fs::write(path_from("OUT_DIR")?.join("assets.rs"), table)
}

/// One line of the table, unless the file is a compressed copy: those go with their original.
fn add(table: &mut String, prefix: &str, folder: &Path, file: &Path) -> io::Result<()> {
    if file.extension().is_some_and(|extension| extension == "br" || extension == "gz") {
        return Ok(());
    }
    let name = file.strip_prefix(folder).map_err(io::Error::other)?.to_string_lossy();
    let file = file.to_string_lossy();
    let copy = |extension: &str| {
        let copy = format!("{file}.{extension}");
        if Path::new(&copy).is_file() { format!("Some(include_bytes!({copy:?}))") } else { "None".to_owned() }
    };
    writeln!(
        table,
        "Asset {{ path: \"/{prefix}{name}\", plain: include_bytes!({file:?}), brotli: {}, gzip: {} }},",
        copy("br"),
        copy("gz")
    )
    .map_err(io::Error::other)
}

fn files_under(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_under(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn path_from(variable: &str) -> io::Result<PathBuf> {
    env::var_os(variable)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other(format!("cargo did not set {variable}")))
}
