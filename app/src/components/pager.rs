use leptos::prelude::*;

/// Which rows of a list are shown, and the way to the others.
#[component]
pub(crate) fn Pager(
    /// `1–25 of 214 workspaces`
    shown: String,
    /// Addresses of the pages before and after this one.
    previous: Option<String>,
    next: Option<String>,
) -> impl IntoView {
    // Both stand in their places even where there is nowhere to go, so that neither moves under a pointer.
    let link = |text: &'static str, rel: &'static str, to: Option<String>| match to {
        Some(href) => view! {
            <a class="button" href=href rel=rel>
                {text}
            </a>
        }
        .into_any(),
        None => view! {
            <span class="button" aria-disabled="true">
                {text}
            </span>
        }
        .into_any(),
    };
    view! {
        <nav class="pager row apart" aria-label="Pages of the list">
            <span class="dim" role="status">
                {shown}
            </span>
            <span class="row">{link("Previous", "prev", previous)} {link("Next", "next", next)}</span>
        </nav>
    }
    .into_any()
}
