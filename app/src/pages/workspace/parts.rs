//! Today by user, route and model.

use leptos::prelude::*;
use tollkeeper::model::fmt::thousands;
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
        <table class="figures part">
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
    let share = share(part.tokens, all);
    view! {
        <tr>
            <th scope="row">
                {part.name}
                <svg class="share-bar" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">
                    <rect width=share.to_string() height="3" />
                </svg>
            </th>
            <td class="number">
                {thousands(part.tokens)}
            </td>
            <td class="number">
                {format!("{share} %")}
            </td>
            <td class="number">
                {thousands(part.requests)}
            </td>
        </tr>
    }
    .into_any()
}

/// In whole percent, to the nearest.
fn share(tokens: u64, all: u64) -> u64 {
    let (tokens, all) = (u128::from(tokens), u128::from(all.max(1)));
    u64::try_from((tokens * 200 + all) / (2 * all)).map_or(100, |share| share.min(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_to_the_nearest() {
        assert_eq!([(1, 3), (2, 3), (3, 3), (0, 0)].map(|(part, all)| share(part, all)), [33, 67, 100, 0]);
        assert_eq!(share(u64::MAX, 1), 100);
    }
}
