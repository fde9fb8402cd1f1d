//! The files beside the pages: the browser bundle and `public/`, both inside the binary.

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

/// Names under `/pkg` carry their content's digest, so what a browser has of them is right for ever.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Files of `public/` keep their names over versions.
const AN_HOUR: HeaderValue = HeaderValue::from_static("public, max-age=3600");

struct Asset {
    path: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

// `FILES` and `MANIFEST`, by `build.rs`.
include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Paths of the bundle's files, without the leading slash.
#[derive(Deserialize)]
pub(crate) struct Bundle {
    pub(crate) js: String,
    pub(crate) wasm: String,
    pub(crate) css: String,
}

/// None if the binary was compiled before any bundle was made.
pub(crate) fn bundle() -> Option<&'static Bundle> {
    static BUNDLE: LazyLock<Option<Bundle>> =
        LazyLock::new(|| MANIFEST.and_then(|manifest| serde_json::from_str(manifest).ok()));
    BUNDLE.as_ref()
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = Router::new()
        // Asked for by old browsers and by bookmarks; every current one takes SVG.
        .route("/favicon.ico", get(|headers: HeaderMap| async move { answer("/favicon.svg", &headers) }));
    for asset in FILES {
        router =
            router.route(asset.path, get(move |headers: HeaderMap| async move { asset.answer(&headers) }));
    }
    router
}

fn answer(path: &str, headers: &HeaderMap) -> Response {
    match FILES.iter().find(|asset| asset.path == path) {
        Some(asset) => asset.answer(headers),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Asset {
    fn answer(&self, request: &HeaderMap) -> Response {
        let (encoding, bytes) = self.best_for(request);
        let mut response = Response::new(Body::from(bytes));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(self.path)));
        let caching = if self.path.starts_with("/pkg/") { IMMUTABLE } else { AN_HOUR };
        headers.insert(header::CACHE_CONTROL, caching);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self.brotli.is_some() || self.gzip.is_some() {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if let Some(encoding) = encoding {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        response
    }

    fn best_for(&self, request: &HeaderMap) -> (Option<&'static str>, &'static [u8]) {
        [("br", self.brotli), ("gzip", self.gzip)]
            .into_iter()
            .find_map(|(encoding, copy)| {
                copy.filter(|_| accepts(request, encoding)).map(|bytes| (Some(encoding), bytes))
            })
            .unwrap_or((None, self.plain))
    }
}

/// Whether `Accept-Encoding` names the encoding with a weight above 0.
fn accepts(request: &HeaderMap, encoding: &str) -> bool {
    request
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|offer| {
            let (name, weight) = offer.split_once(';').unwrap_or((offer, "q=1"));
            let weight = weight.trim().strip_prefix("q=").and_then(|number| number.parse::<f32>().ok());
            name.trim().eq_ignore_ascii_case(encoding) && weight.is_none_or(|weight| weight > 0.0)
        })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSET: Asset =
        Asset { path: "/pkg/a.js", plain: b"plain", brotli: Some(b"brotli"), gzip: Some(b"gzip") };

    fn asked_with(accept: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accept))])
    }

    #[test]
    fn the_smallest_copy_that_the_browser_takes() {
        let chosen = |accept| ASSET.best_for(&asked_with(accept)).0;
        assert_eq!(chosen("gzip, deflate, br"), Some("br"));
        assert_eq!(chosen("gzip;q=0.5, br;q=0"), Some("gzip"));
        assert_eq!(chosen("identity"), None);
        assert_eq!(ASSET.best_for(&HeaderMap::new()), (None, &b"plain"[..]));
    }

    #[test]
    fn hashed_names_are_kept_for_ever_and_others_are_not() {
        let caching =
            |asset: &Asset| asset.answer(&HeaderMap::new()).headers()[header::CACHE_CONTROL].clone();
        assert_eq!(caching(&ASSET), IMMUTABLE);
        assert_eq!(caching(&Asset { path: "/robots.txt", ..ASSET }), AN_HOUR);
    }

    #[test]
    fn there_is_a_favicon_at_both_addresses() {
        assert_eq!(
            answer("/favicon.svg", &HeaderMap::new()).headers()[header::CONTENT_TYPE],
            "image/svg+xml"
        );
    }
}
