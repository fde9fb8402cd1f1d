use leptos::prelude::*;
use tollkeeper::model::reports::Change;

/// What changed, each from what to what.
#[component]
pub(crate) fn Changes(changes: Vec<Change>) -> impl IntoView {
    let line = |change: Change| {
        view! {
            <li>
                <span class="dim">{change.field}</span>
                " "
                <del>{change.before}</del>
                <span class="visually-hidden">" changed to "</span>
                <span class="arrow" aria-hidden="true">
                    "→"
                </span>
                " "
                <ins>{change.after}</ins>
            </li>
        }
    };
    view! { <ul class="changes">{changes.into_iter().map(line).collect_view()}</ul> }
}
