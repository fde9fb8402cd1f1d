//! Settings → Audit: who changed what, newest first.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;
use tollkeeper::model::Day;
use tollkeeper::model::fmt::counted;
use tollkeeper::model::reports::{AuditLine, AuditPage as Page, AuditQuery};

use crate::backend::audit::read_audit;
use crate::browser::live::follow;
use crate::components::{Alert, Changes, Guard, Need, PageHead, Pager, Time, sentence, set_status};

const PAGE: &str = "/settings/audit";

#[component]
pub(crate) fn AuditPage() -> impl IntoView {
    view! {
        <Guard need=Need::Admin>
            <PageHead title="Audit">
                "Every change of a setting, with who made it. Each entry carries the hash of the one before it: verify the chain with "
                <code>"tollkeeper audit verify"</code> "."
            </PageHead>
            <Trail />
        </Guard>
    }
}

#[component]
fn Trail() -> impl IntoView {
    let map = use_query_map();
    let query = Memo::new(move |_| asked(&map.read()));
    let page = Resource::new_blocking(move || query.get(), read_audit);
    view! {
        <section class="card audit" aria-label="Entries">
            {move || view! { <Filters query=query.get() /> }}
            <Suspense>
                {move || Suspend::new(async move {
                    match page.await {
                        Ok(page) => view! { <Entries page query=query.get_untracked() /> }.into_any(),
                        Err(error) => {
                            set_status(error.0.status());
                            view! { <Alert>{sentence(&error.0)}</Alert> }.into_any()
                        }
                    }
                })}
            </Suspense>
        </section>
    }
    .into_any()
}

fn asked(map: &ParamsMap) -> AuditQuery {
    let text = |name: &str| map.get_str(name).unwrap_or_default().trim().to_owned();
    let id = |name: &str| map.get_str(name).and_then(|id| id.parse().ok());
    AuditQuery {
        workspace: text("workspace"),
        actor: text("actor"),
        from: text("from"),
        to: text("to"),
        before: id("before"),
        after: id("after"),
    }
}

/// A plain form: the address says what is shown.
#[component]
fn Filters(query: AuditQuery) -> impl IntoView {
    let field = |label: &'static str, name: &'static str, kind: &'static str, value: String| {
        view! {
            <div class="field">
                <label for=name>{label}</label>
                <input id=name name=name type=kind value=value autocomplete="off" />
            </div>
        }
    };
    view! {
        <form class="filters" method="get" action=PAGE role="search">
            {field("Workspace", "workspace", "text", query.workspace)}
            {field("Actor", "actor", "text", query.actor)}
            {field("From (UTC day)", "from", "date", day(query.from))}
            {field("To (UTC day)", "to", "date", day(query.to))}
            <div class="row">
                <button class="button" type="submit">
                    "Filter"
                </button>
                <a class="button quiet" href=PAGE>
                    "Clear"
                </a>
            </div>
        </form>
    }
    .into_any()
}

/// What a date's box takes: anything else the browser would complain of.
fn day(text: String) -> String {
    Day::parse(&text).map(|_| text).unwrap_or_default()
}

#[component]
fn Entries(page: Page, query: AuditQuery) -> impl IntoView {
    // Older pages stay as they are.
    let newest = query.before.is_none() && query.after.is_none();
    let stream = newest.then(|| address("/api/live/audit", &query, None));
    let shown = RwSignal::new(page);
    follow(Signal::stored(stream), move |_, told| {
        let _ = shown.try_set(told);
    });
    let pager = move || {
        let page = shown.read();
        let to = |name: &'static str, id: Option<i64>| id.map(|id| address(PAGE, &query, Some((name, id))));
        let (previous, next) = (to("after", page.newer), to("before", page.older));
        let count = u64::try_from(page.lines.len()).unwrap_or(u64::MAX);
        view! { <Pager shown=counted(count, "entry", "entries") previous next /> }
    };
    view! {
        <table class="table trail">
            <thead>
                <tr>
                    <th scope="col">"Time (UTC)"</th>
                    <th scope="col">"Actor"</th>
                    <th scope="col">"Action"</th>
                    <th scope="col">"Workspace"</th>
                    <th scope="col">"Before → after"</th>
                </tr>
            </thead>
            <tbody>
                <For each=move || shown.get().lines key=|line| line.id let:line>
                    {entry(line)}
                </For>
            </tbody>
        </table>
        {move || {
            shown.read().lines.is_empty().then(|| {
                view! { <p class="no-entry dim">"No entry fits. Take a filter away, or look further back."</p> }
            })
        }}
        {pager}
    }
    .into_any()
}

fn entry(line: AuditLine) -> impl IntoView {
    let workspace = line.workspace.map(|id| {
        view! { <a href=format!("/settings/workspaces/{id}")>{id.to_string()}</a> }
    });
    view! {
        <tr>
            <th scope="row">
                <Time at=line.at />
            </th>
            <td data-label="Actor">{line.actor}</td>
            <td data-label="Action">
                <code>{line.action}</code>
            </td>
            <td data-label="Workspace">{workspace}</td>
            <td>
                <Changes changes=line.changes />
            </td>
        </tr>
    }
    .into_any()
}

/// The filters as an address, and where the page begins.
fn address(path: &str, query: &AuditQuery, at: Option<(&'static str, i64)>) -> String {
    let mut map = ParamsMap::new();
    let filters =
        [("workspace", &query.workspace), ("actor", &query.actor), ("from", &query.from), ("to", &query.to)];
    for (name, value) in filters.into_iter().filter(|(_, value)| !value.is_empty()) {
        map.insert(name, value.clone());
    }
    if let Some((name, id)) = at {
        map.insert(name, id.to_string());
    }
    format!("{path}{}", map.to_query_string())
}
