use leptos::prelude::*;

/// A figure of a summary: what it is, the figure, and what it is to be compared with.
#[component]
pub(crate) fn Fact(name: &'static str, value: Signal<String>, more: Signal<String>) -> impl IntoView {
    view! {
        <div>
            <dt>{name}</dt>
            <dd>
                <span>{value}</span>
                <small>{more}</small>
            </dd>
        </div>
    }
    .into_any()
}
