//! What went wrong with a form, told on the page that it leads back to.
//!
//! It travels in a cookie of a minute's life, which the page takes away when it shows it. In the address, where
//! Leptos puts it, it would be shown again with every reload, and anyone could write a link that makes this
//! site say what they like.

#[cfg(feature = "ssr")]
use axum::http::{HeaderMap, HeaderValue, header};
#[cfg(feature = "ssr")]
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use tollkeeper::model::Error;

#[cfg(feature = "ssr")]
const COOKIE: &str = "flash";
/// Browsers drop larger cookies.
#[cfg(feature = "ssr")]
const LONGEST: usize = 3_500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flash {
    /// Path of the server function that failed.
    pub(crate) of: String,
    pub(crate) error: Error,
}

/// To be called once, at the root.
pub(crate) fn provide_flash() {
    let flash: Option<Flash> = SharedValue::new(Flash::take).into_inner();
    provide_context(flash);
}

/// What went wrong when this function was last sent a form.
pub(crate) fn flash_of(function: &str) -> Option<Error> {
    use_context::<Option<Flash>>().flatten().filter(|flash| flash.of == function).map(|flash| flash.error)
}

#[cfg(not(feature = "ssr"))]
impl Flash {
    fn take() -> Option<Self> {
        None
    }
}

#[cfg(feature = "ssr")]
impl Flash {
    fn take() -> Option<Self> {
        let flash = Self::of_request(&use_context::<axum::http::request::Parts>()?.headers)?;
        let taken_away = HeaderValue::from_static("flash=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
        use_context::<leptos_axum::ResponseOptions>()?.append_header(header::SET_COOKIE, taken_away);
        Some(flash)
    }

    pub(crate) fn new(of: &str, error: Error) -> Self {
        Self { of: of.to_owned(), error }
    }

    pub(crate) fn cookie(&self) -> Option<HeaderValue> {
        let value = BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).ok()?);
        let cookie = format!("{COOKIE}={value}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
        (value.len() <= LONGEST).then(|| HeaderValue::from_str(&cookie).ok())?
    }

    fn of_request(headers: &HeaderMap) -> Option<Self> {
        let value = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find_map(|(name, value)| (name == COOKIE).then_some(value))?;
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(value).ok()?).ok()
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn a_fault_comes_back_with_the_next_request() {
        let flash = Flash::new("/_fn/sign-in", Error::Invalid("a name is \"missing\"; ünïcode".into()));
        let cookie = flash.cookie().unwrap();
        let pair = cookie.to_str().unwrap().split(';').next().unwrap();
        let headers = HeaderMap::from_iter([(
            header::COOKIE,
            HeaderValue::from_str(&format!("theme=dark; {pair}")).unwrap(),
        )]);
        assert_eq!(Flash::of_request(&headers), Some(flash));
    }

    #[test]
    fn anything_else_is_none() {
        for cookie in ["", "flash=", "flash=%%%", "flash=e30"] {
            let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(cookie))]);
            assert_eq!(Flash::of_request(&headers), None, "{cookie}");
        }
    }
}
