use leptos::prelude::*;

/// A button that sends its form.
#[component]
pub(crate) fn Button(
    /// The one that the page is about, at most one a form.
    #[prop(optional)]
    primary: bool,
    children: Children,
) -> impl IntoView {
    view! {
        <button class="button" class:primary=primary type="submit">
            {children()}
        </button>
    }
}
