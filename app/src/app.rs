//! The routes, and what surrounds every page.

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::{SsrMode, path};
use tollkeeper::model::Error;

use crate::account::provide_account;
use crate::backend::flash::provide_flash;
use crate::components::{Fault, Frame, Gate};
use crate::pages::audit::AuditPage;
use crate::pages::home::HomePage;
use crate::pages::keys::KeysPage;
use crate::pages::login::LoginPage;
use crate::pages::not_found::NotFoundPage;
use crate::pages::playground::PlaygroundPage;
use crate::pages::providers::ProvidersPage;
use crate::pages::setup::SetupPage;
use crate::pages::workspace::WorkspacePage;
use crate::pages::workspaces::WorkspacesPage;

/// Everything inside `<body>`. Pages are rendered as a whole before they are sent (`SsrMode::Async`),
/// so that they work without script and can still choose their status.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    provide_account();
    provide_flash();
    provide_failed();
    mark_as_hydrated();
    view! {
        <Title formatter=|title: String| format!("{title} · Tollkeeper") />
        <Router>
            <Routes fallback=|| view! { <Unrouted /> }.into_any()>
                <Route path=path!("/login") view=|| view! { <LoginPage /> }.into_any() ssr=SsrMode::Async />
                <Route path=path!("/setup") view=|| view! { <SetupPage /> }.into_any() ssr=SsrMode::Async />
                <ParentRoute path=path!("") view=|| view! { <Frame /> }.into_any() ssr=SsrMode::Async>
                    <Route path=path!("/") view=|| view! { <HomePage /> }.into_any() />
                    <Route path=path!("/playground") view=|| view! { <PlaygroundPage /> }.into_any() />
                    <Route path=path!("/settings/workspaces") view=|| view! { <WorkspacesPage /> }.into_any() />
                    <Route path=path!("/settings/workspaces/:id") view=|| view! { <WorkspacePage /> }.into_any() />
                    <Route path=path!("/settings/providers") view=|| view! { <ProvidersPage /> }.into_any() />
                    <Route path=path!("/settings/keys") view=|| view! { <KeysPage /> }.into_any() />
                    <Route path=path!("/settings/audit") view=|| view! { <AuditPage /> }.into_any() />
                </ParentRoute>
            </Routes>
        </Router>
    }
}

/// The error of a form that has no page to go back to, to be shown in the place of one.
#[derive(Clone, Default)]
pub(crate) struct Failed(pub(crate) Option<Error>);

fn provide_failed() {
    #[cfg(feature = "ssr")]
    let failed = || use_context::<Failed>().and_then(|failed| failed.0);
    #[cfg(not(feature = "ssr"))]
    let failed = || None;
    provide_context(Failed(SharedValue::new(failed).into_inner()));
}

#[component]
fn Unrouted() -> impl IntoView {
    match use_context::<Failed>().and_then(|failed| failed.0) {
        Some(error) => view! {
            <Gate>
                <Fault error />
            </Gate>
        }
        .into_any(),
        None => view! { <NotFoundPage /> }.into_any(),
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
