//! Today by user, route and model.

use leptos::prelude::*;
use tollkeeper::model::fmt::{percent, thousands};
use tollkeeper::model::reports::{Part, WorkspaceDetail};

#[component]
pub(super) fn WhoAndWhat(detail: RwSignal<WorkspaceDetail>) -> impl IntoView {
    view! {
        <section class="card" aria-labelledby="parts">
            <header>
                <h2 id="parts">"Who and what, today"</h2>
                <small class="dim">"most tokens first"</small>
            </header>
            <div class="parts">
                <Parts detail of="User" parts=|detail| &detail.by_user />
                <Parts detail of="Route" parts=|detail| &detail.by_route />
                <Parts detail of="Model" parts=|detail| &detail.by_model />
            </div>
        </section>
    }
    .into_any()
}

#[component]
fn Parts(
    detail: RwSignal<WorkspaceDetail>,
    of: &'static str,
    parts: fn(&WorkspaceDetail) -> &Vec<Part>,
) -> impl IntoView {
    let shown = Memo::new(move |_| (parts(&detail.read()).clone(), detail.read().row.today.tokens()));
    let rows = move || {
        let (parts, all) = shown.get();
        parts.into_iter().map(|part| row(part, all)).collect_view()
    };
    view! {
        <table class="table part">
            <thead>
                <tr>
                    <th scope="col">{of}</th>
                    <th scope="col" class="number">
                        "Tokens"
                    </th>
                    <th scope="col" class="number">
                        "Share"
                    </th>
                    <th scope="col" class="number">
                        "Requests"
                    </th>
                </tr>
            </thead>
            <tbody>
                {rows}
                {move || {
                    shown.read().0.is_empty().then(|| view! { <tr><td class="dim" colspan="4">"Nothing yet today."</td></tr> })
                }}
            </tbody>
        </table>
    }
    .into_any()
}

fn row(part: Part, all: u64) -> impl IntoView {
    let share = percent(part.tokens, all).min(100);
    view! {
        <tr>
            <th scope="row">
                {part.name}
                <svg class="share-bar" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">
                    <rect width=share.to_string() height="3" />
                </svg>
            </th>
            <td class="number" data-label="Tokens">
                {thousands(part.tokens)}
            </td>
            <td class="number" data-label="Share">
                {format!("{share} %")}
            </td>
            <td class="number" data-label="Requests">
                {thousands(part.requests)}
            </td>
        </tr>
    }
    .into_any()
}
