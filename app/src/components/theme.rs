//! Light, dark or what the system prefers. The choice is kept in a cookie, so that the server's HTML has
//! it already and nothing flashes.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlDocument;

const COOKIE: &str = "theme";
const A_YEAR: u32 = 365 * 24 * 60 * 60;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    fn parse(text: &str) -> Self {
        match text {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }

    /// The value of `html[data-theme]` and of the cookie; none leaves it to the system.
    pub(crate) fn attribute(self) -> Option<&'static str> {
        match self {
            Self::System => None,
            Self::Light => Some("light"),
            Self::Dark => Some("dark"),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::System => "Theme: system",
            Self::Light => "Theme: light",
            Self::Dark => "Theme: dark",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::System => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::System,
        }
    }

    /// The theme that the page was made with: by the request's cookie on the server, by the document that
    /// it sent in the browser, so both sides start equal.
    pub(crate) fn of_page() -> Self {
        #[cfg(feature = "ssr")]
        let theme = use_context::<axum::http::request::Parts>().map(|parts| Self::of_request(&parts.headers));
        #[cfg(not(feature = "ssr"))]
        let theme = document()
            .document_element()
            .and_then(|root| root.get_attribute("data-theme"))
            .map(|value| Self::parse(&value));
        theme.unwrap_or_default()
    }

    #[cfg(feature = "ssr")]
    fn of_request(headers: &axum::http::HeaderMap) -> Self {
        headers
            .get_all(axum::http::header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(name, _)| *name == COOKIE)
            .map_or_else(Self::default, |(_, value)| Self::parse(value))
    }

    /// Browser only: shows this theme and remembers it.
    fn apply(self) {
        let document = document();
        if let Some(root) = document.document_element() {
            let _ = match self.attribute() {
                Some(value) => root.set_attribute("data-theme", value),
                None => root.remove_attribute("data-theme"),
            };
        }
        let (value, age) = self.attribute().map_or(("", 0), |value| (value, A_YEAR));
        let cookie = format!("{COOKIE}={value}; Path=/; Max-Age={age}; SameSite=Lax");
        let _ = document.unchecked_into::<HtmlDocument>().set_cookie(&cookie);
    }
}

/// Goes from system to light to dark. Without script there is nothing it could do, so it isn't shown.
#[component]
pub(crate) fn ThemeSwitch() -> impl IntoView {
    let theme = RwSignal::new(Theme::of_page());
    let switch = move |_| {
        theme.update(|theme| *theme = theme.next());
        theme.get_untracked().apply();
    };
    view! {
        <button class="button quiet needs-script" type="button" on:click=switch>
            {move || theme.get().label()}
        </button>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_goes_round() {
        assert_eq!(Theme::System.next().next().next(), Theme::System);
    }

    #[test]
    fn an_attribute_reads_back() {
        for theme in [Theme::Light, Theme::Dark] {
            assert_eq!(theme.attribute().map(Theme::parse), Some(theme));
        }
        assert_eq!(Theme::parse("\"><script>"), Theme::System);
    }

    #[cfg(feature = "ssr")]
    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = axum::http::HeaderMap::new();
        assert_eq!(Theme::of_request(&headers), Theme::System);
        headers.insert("cookie", axum::http::HeaderValue::from_static("tollkeeper=x; theme=dark"));
        assert_eq!(Theme::of_request(&headers), Theme::Dark);
    }
}
