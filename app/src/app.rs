//! The routes, and what surrounds every page.

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::components::{Route, Router, Routes};
use leptos_router::{SsrMode, path};

use crate::pages::login::LoginPage;
use crate::pages::not_found::NotFoundPage;

/// Everything inside `<body>`. Pages are rendered as a whole before they are sent (`SsrMode::Async`),
/// so that they work without script and can still choose their status.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    mark_as_hydrated();
    view! {
        <Title formatter=|title: String| format!("{title} · Tollkeeper") />
        <Router>
            <Routes fallback=|| view! { <NotFoundPage /> }.into_any()>
                <Route path=path!("/login") view=|| view! { <LoginPage /> }.into_any() ssr=SsrMode::Async />
            </Routes>
        </Router>
    }
}

/// Sets `html[data-hydrated]` once the page reacts: what needs script shows itself then, and tests wait
/// for it. Effects run in the browser alone.
fn mark_as_hydrated() {
    Effect::new(|| {
        if let Some(root) = document().document_element() {
            let _ = root.set_attribute("data-hydrated", "");
        }
    });
}
