use leptos::prelude::*;

/// The mark and the name.
#[component]
pub(crate) fn Brand() -> impl IntoView {
    view! {
        <a class="brand" href="/">
            <svg width="22" height="22" viewBox="0 0 22 22" fill="none" stroke="currentColor" aria-hidden="true">
                <path d="M4 19V5M18 19V5M2.5 8.5h17" stroke-width="2" stroke-linecap="round" />
                <path d="M8.5 19v-6M13.5 19v-6" stroke-width="1.8" stroke-linecap="round" />
            </svg>
            "Tollkeeper"
        </a>
    }
}
