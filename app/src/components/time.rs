use leptos::prelude::*;
use tollkeeper::model::Timestamp;

/// A time in UTC, to the minute.
#[component]
pub(crate) fn Time(at: Timestamp) -> impl IntoView {
    view! { <time datetime=at.rfc3339()>{at.minute()}</time> }
}
