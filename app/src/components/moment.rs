use leptos::prelude::*;
use tollkeeper::model::Timestamp;

/// `2026-09-20 10:00`, UTC: the same on both sides, whatever the browser's zone.
#[component]
pub(crate) fn Moment(at: Timestamp) -> impl IntoView {
    let exact = at.rfc3339();
    let shown = exact.get(..16).unwrap_or(&exact).replace('T', " ");
    view! {
        <time class="moment" datetime=exact.clone() title=exact>
            {shown}
        </time>
    }
}
