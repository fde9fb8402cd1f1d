//! Searching and filtering the list. Without script a form and links; with it the list follows as one types.

use std::time::Duration;

use leptos::html::Input;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use tollkeeper::model::fmt::thousands;
use tollkeeper::model::reports::{WorkspaceFilter, WorkspaceSort, WorkspacesPage, WorkspacesQuery};

use super::query::{FILTERS, PAGE, address, filter_word, sort_word};
use super::summary::filter_label;

/// How long a pause in typing has to be for the list to follow.
const PAUSE: Duration = Duration::from_millis(200);

#[component]
pub(super) fn Toolbar(page: Signal<WorkspacesPage>, query: Memo<WorkspacesQuery>) -> impl IntoView {
    view! {
        <header class="toolbar">
            <Search query />
            <Filters page query />
        </header>
    }
    .into_any()
}

#[component]
fn Search(query: Memo<WorkspacesQuery>) -> impl IntoView {
    let input = NodeRef::<Input>::new();
    let navigate = use_navigate();
    let search = move |text: String| {
        let now = query.get_untracked();
        if text.trim() != now.search.trim() {
            let to = address(&WorkspacesQuery { search: text, page: 1, ..now });
            // Each letter typed is no step to go back to.
            navigate(&to, NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() });
        }
    };
    let mut follow = debounce(PAUSE, search.clone());
    // Going back brings another search; what is being typed is left alone.
    Effect::new(move || {
        let text = query.read().search.clone();
        if let Some(input) = input.get()
            && document().active_element().as_ref() != Some(input.as_ref())
        {
            input.set_value(&text);
        }
    });
    let hidden = move |name: &'static str, word: &'static str, usual: bool| {
        (!usual).then(|| view! { <input type="hidden" name=name value=word /> })
    };
    view! {
        <form
            class="search"
            role="search"
            method="get"
            action=PAGE
            on:submit=move |event| {
                event.prevent_default();
                if let Some(input) = input.get_untracked() {
                    search(input.value());
                }
            }
        >
            <input
                node_ref=input
                type="search"
                name="search"
                aria-label="Search workspaces"
                placeholder="Search workspaces"
                autocomplete="off"
                maxlength="200"
                value=query.get_untracked().search
                on:input=move |event| follow(event_target_value(&event))
            />
            {move || {
                let sort = query.read().sort;
                hidden("sort", sort_word(sort), sort == WorkspaceSort::default())
            }}
            {move || {
                let filter = query.read().filter;
                hidden("filter", filter_word(filter), filter == WorkspaceFilter::default())
            }}
            <button class="button" type="submit">
                "Search"
            </button>
        </form>
    }
    .into_any()
}

#[component]
fn Filters(page: Signal<WorkspacesPage>, query: Memo<WorkspacesQuery>) -> impl IntoView {
    let totals = Memo::new(move |_| page.read().totals);
    let link = move |filter: WorkspaceFilter| {
        let (word, _, title) = filter_label(filter, &totals.get_untracked());
        let href = move || address(&WorkspacesQuery { filter, page: 1, ..query.get() });
        let current = move || (query.read().filter == filter).then_some("true");
        view! {
            <li>
                <a href=href aria-current=current title=title data-noscroll="true">
                    {word}
                    <span class="count">{move || thousands(filter_label(filter, &totals.read()).1)}</span>
                </a>
            </li>
        }
    };
    view! {
        <nav class="segments" aria-label="Filter">
            <ul>{FILTERS.map(link).collect_view()}</ul>
        </nav>
    }
    .into_any()
}
