use leptos::prelude::*;

/// Goes to another page: by a 303 on the server, without loading in the browser.
#[component]
pub(crate) fn Lead(to: &'static str) -> impl IntoView {
    #[cfg(feature = "ssr")]
    crate::backend::request::lead_to(to);
    #[cfg(not(feature = "ssr"))]
    leptos_router::hooks::use_navigate()(
        to,
        leptos_router::NavigateOptions { replace: true, ..Default::default() },
    );
    view! { <a href=to>"Go on"</a> }
}
