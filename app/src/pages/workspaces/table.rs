//! The list itself: a table, on a phone a card for each row.

use leptos::prelude::*;
use tollkeeper::model::reports::{WorkspaceSort, WorkspacesPage, WorkspacesQuery};

use super::query::address;
use super::row::cells;

#[component]
pub(super) fn Table(page: Signal<WorkspacesPage>, query: Memo<WorkspacesQuery>) -> impl IntoView {
    let ids = Memo::new(move |_| page.read().rows.iter().map(|row| row.row.id.clone()).collect::<Vec<_>>());
    view! {
        <table class="table workspaces">
            <caption class="visually-hidden">"Workspaces, their usage of today and their limits"</caption>
            <thead>
                <tr>
                    <Sorted query sort=WorkspaceSort::Name text="Workspace" />
                    <Sorted query sort=WorkspaceSort::Tokens text="Tokens today" number=true />
                    <Sorted query sort=WorkspaceSort::Share text="Budget used" />
                    <th scope="col">"7 days"</th>
                    <Sorted query sort=WorkspaceSort::Requests text="Requests" number=true />
                    <Sorted query sort=WorkspaceSort::Refused text="Refused" number=true />
                    <th scope="col" class="number">
                        "Rate per user"
                    </th>
                </tr>
            </thead>
            <tbody>
                <For
                    each=move || ids.get()
                    key=Clone::clone
                    children=move |id| {
                        let row = Memo::new(move |_| page.read().rows.iter().find(|row| row.row.id == id).cloned());
                        view! { <tr>{move || row.get().map(cells)}</tr> }
                    }
                />
            </tbody>
        </table>
    }
    .into_any()
}

/// A column's heading that sorts by it: names from A on, numbers from the most on.
#[component]
fn Sorted(
    query: Memo<WorkspacesQuery>,
    sort: WorkspaceSort,
    text: &'static str,
    #[prop(optional)] number: bool,
) -> impl IntoView {
    let direction = if sort == WorkspaceSort::Name { "ascending" } else { "descending" };
    let is_sorted = move || (query.read().sort == sort).then_some(direction);
    let href = move || address(&WorkspacesQuery { sort, page: 1, ..query.get() });
    view! {
        <th scope="col" class:number=number aria-sort=is_sorted>
            <a href=href data-noscroll="true">
                {text}
            </a>
        </th>
    }
    .into_any()
}
