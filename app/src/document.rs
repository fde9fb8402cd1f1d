//! The HTML document around the pages, made by the server alone.

use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::MetaTags;

use crate::App;
use crate::assets::{Bundle, bundle};
use crate::components::theme::Theme;

pub(crate) fn shell() -> impl IntoView {
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=Theme::of_page().attribute()>
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <link rel="icon" href="/favicon.svg" type="image/svg+xml" />
                {bundle().map(|bundle| view! { <BundleLinks bundle /> })}
                <MetaTags />
            </head>
            <body>
                <App />
            </body>
        </html>
    }
}

/// The stylesheet, and the script that starts hydration.
///
/// Leptos's own `HydrationScripts` (0.8.23) writes the nonce into `crossorigin`; Firefox then drops the
/// preloaded wasm and at times never hydrates. The files' names also come from this binary, not from a file.
#[component]
fn BundleLinks(bundle: &'static Bundle) -> impl IntoView {
    let Bundle { js, wasm, css } = bundle;
    // Names are made of letters, digits, dots and slashes, so they need no escaping inside a script.
    let start = format!(
        "import('/{js}').then(pages => pages.default({{ module_or_path: '/{wasm}' }}).then(() => pages.hydrate()));"
    );
    view! {
        <link rel="stylesheet" href=format!("/{css}") />
        <link rel="modulepreload" href=format!("/{js}") />
        <link rel="preload" href=format!("/{wasm}") r#as="fetch" r#type="application/wasm" crossorigin="" />
        <script type="module" nonce=use_nonce()>
            {start}
        </script>
    }
}
