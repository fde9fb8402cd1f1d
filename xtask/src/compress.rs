//! Compressed copies made once, while building, so that serving them costs nothing.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::Result;

#[derive(Clone, Copy)]
pub(crate) enum Effort {
    /// While developing: nobody waits for the network.
    Quick,
    Best,
}

/// Writes `FILE.br` and `FILE.gz` beside the file.
pub(crate) fn beside(file: &Path, effort: Effort) -> Result<()> {
    let bytes = fs::read(file)?;
    let name = file.display();
    fs::write(format!("{name}.br"), brotli(&bytes, effort)?)?;
    fs::write(format!("{name}.gz"), gzip(&bytes, effort)?)?;
    Ok(())
}

fn brotli(bytes: &[u8], effort: Effort) -> Result<Vec<u8>> {
    let quality = match effort {
        Effort::Quick => 3,
        Effort::Best => 11,
    };
    let parameters = brotli::enc::BrotliEncoderParams { quality, lgwin: 22, ..Default::default() };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &bytes[..], &mut out, &parameters)?;
    Ok(out)
}

fn gzip(bytes: &[u8], effort: Effort) -> Result<Vec<u8>> {
    let level = match effort {
        Effort::Quick => Compression::fast(),
        Effort::Best => Compression::best(),
    };
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
