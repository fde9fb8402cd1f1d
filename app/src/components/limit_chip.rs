use leptos::prelude::*;
use tollkeeper::model::reports::LimitRow;

/// Where a limit comes from: `default`, `override` or `disabled`.
#[component]
pub(crate) fn LimitChip(limit: LimitRow) -> impl IntoView {
    let word = limit.source_word();
    let class = match word {
        "override" => "chip set",
        "disabled" => "chip warn",
        _ => "chip",
    };
    view! { <span class=class>{word}</span> }
}
