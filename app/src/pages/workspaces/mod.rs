//! Settings → Workspaces: every workspace that one may see, its usage of today against its limits.
//!
//! The page's address says what is searched, sorted and filtered. The server renders the list for it; from then
//! on one stream tells what changes, and another address is another stream.

mod query;
mod row;
mod summary;
mod table;
mod toolbar;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use tollkeeper::model::fmt::{span_ms, thousands};
use tollkeeper::model::reports::{PAGE_SIZE, WorkspaceFilter, WorkspacesPage, WorkspacesQuery};

use crate::account::me;
use crate::backend::workspaces::list_workspaces;
use crate::browser::live::follow;
use crate::components::{Fault, Guard, Need, PageHead, Pager};
use summary::{Refusing, Summary};
use table::Table;
use toolbar::Toolbar;

#[component]
pub(crate) fn WorkspacesPage() -> impl IntoView {
    view! {
        <Guard need=Need::Settings>
            <Workspaces />
        </Guard>
    }
    .into_any()
}

#[component]
fn Workspaces() -> impl IntoView {
    let params = use_query_map();
    let query = Memo::new(move |_| query::of_address(&params.read()));
    // Read once: what another address shows comes by the stream.
    let first = Resource::new_blocking(|| (), move |()| list_workspaces(query.get_untracked()));
    view! {
        <Suspense fallback=|| view! { <Loading /> }>
            {move || Suspend::new(async move {
                match first.await {
                    Ok(page) => view! { <List page query /> }.into_any(),
                    Err(error) => view! { <Fault error=error.0 /> }.into_any(),
                }
            })}
        </Suspense>
    }
    .into_any()
}

#[component]
fn Loading() -> impl IntoView {
    view! {
        <PageHead title="Workspaces" />
        <p class="dim">"Loading …"</p>
    }
    .into_any()
}

/// What is shown, and the query that it answers.
#[derive(Clone, PartialEq)]
struct Shown {
    /// The stream's address for the query, which tells one query from another.
    address: String,
    page: WorkspacesPage,
}

#[component]
fn List(page: WorkspacesPage, query: Memo<WorkspacesQuery>) -> impl IntoView {
    let address = Memo::new(move |_| query::live_address(&query.read()));
    let shown = RwSignal::new(Shown { address: address.get_untracked(), page });
    let lost = follow(Signal::derive(move || Some(address.get())), move |address, page: WorkspacesPage| {
        let _ = shown.try_update(|shown| {
            let page = if shown.address == address { in_the_order_of(&shown.page, page) } else { page };
            *shown = Shown { address: address.to_owned(), page };
        });
    });
    let page = Signal::derive(move || shown.read().page.clone());
    // Until the stream of another query has told the first, what stands there is the answer of the one before.
    let waiting = Signal::derive(move || shown.read().address != address.get());
    let reset_in = move || {
        let page = page.read();
        span_ms(page.resets_at.ms_since(page.now))
    };
    let matching = Memo::new(move |_| page.read().matching);
    view! {
        <PageHead title="Workspaces">
            <p>
                "Today’s model usage against the limits in force. Budgets reset at 00:00 UTC, in "
                <span>{reset_in}</span> "."
            </p>
            <p class="lost" role="status">
                {move || lost.get().then_some("The connection is lost: figures may be old. Connecting again …")}
            </p>
        </PageHead>
        <Refusing page />
        <Summary page />
        <section class="card flush" aria-label="List of workspaces">
            <Toolbar page query />
            <div class:waiting=waiting aria-busy=move || waiting.get().to_string()>
                <Show when=move || { matching.get() > 0 } fallback=move || view! { <Nothing query page /> }>
                    <Table page query />
                </Show>
            </div>
        </section>
        {move || pager(&page.read(), &query.read())}
    }
    .into_any()
}

/// The rows as they stand on the screen, where they are the same ones: while numbers tick nothing changes places
/// under the reader's eyes. Another search, sorting or page brings the server's order.
fn in_the_order_of(before: &WorkspacesPage, mut now: WorkspacesPage) -> WorkspacesPage {
    let place = |id: &_| before.rows.iter().position(|row| row.row.id == *id);
    if before.rows.len() == now.rows.len() && now.rows.iter().all(|row| place(&row.row.id).is_some()) {
        now.rows.sort_by_key(|row| place(&row.row.id));
    }
    now
}

fn pager(page: &WorkspacesPage, query: &WorkspacesQuery) -> impl IntoView + use<> {
    let to = |page: u32| query::address(&WorkspacesQuery { page, ..query.clone() });
    let first = u64::from(PAGE_SIZE) * u64::from(page.page - 1) + 1;
    let last = (first - 1) + u64::try_from(page.rows.len()).unwrap_or_default();
    let range = format!("{}–{} of {}", thousands(first), thousands(last), thousands(page.matching));
    let shown = if page.matching == 0 { "None".to_owned() } else { range };
    view! {
        <Pager
            shown
            previous=(page.page > 1).then(|| to(page.page - 1))
            next=(page.page < page.pages).then(|| to(page.page + 1))
        />
    }
    .into_any()
}

/// No row: because there is no workspace at all, or none that is looked for.
#[component]
fn Nothing(query: Memo<WorkspacesQuery>, page: Signal<WorkspacesPage>) -> impl IntoView {
    let admin = me().is_some_and(|me| me.admin);
    move || {
        let query = query.get();
        if page.read().totals.workspaces == 0 {
            let how = if admin {
                "Workspaces come from the directory file: write one and run tollkeeper apply FILE.toml."
            } else {
                "A platform admin makes workspaces, and their members."
            };
            return view! {
                <div class="nothing">
                    <h2>"There are no workspaces yet"</h2>
                    <p>{how}</p>
                </div>
            }
            .into_any();
        }
        let what = match (query.search.trim(), query.filter) {
            ("", WorkspaceFilter::Near) => "No workspace is near its budget".to_owned(),
            ("", WorkspaceFilter::Overridden) => "No workspace has a limit of its own".to_owned(),
            ("", WorkspaceFilter::Refusing) => "No request was refused today".to_owned(),
            (search, WorkspaceFilter::All) => format!("No workspace matches “{search}”"),
            (search, _) => format!("No workspace of this filter matches “{search}”"),
        };
        view! {
            <div class="nothing">
                <h2>{what}</h2>
                <p>
                    <a href=query::PAGE>"Show all workspaces"</a>
                </p>
            </div>
        }
        .into_any()
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use tollkeeper::model::Timestamp;
    use tollkeeper::model::limit::{Effective, Limit, Origin, Setting};
    use tollkeeper::model::reports::{LimitRow, Today, Totals, WorkspaceListRow, WorkspaceRow};

    use super::*;

    fn page(ids: &[&str]) -> WorkspacesPage {
        let effective = Effective { limit: Limit::Disabled, from: Origin::Environment };
        let limit = LimitRow::new(Setting::Inherit, effective);
        let row = |id: &&str| WorkspaceListRow {
            row: WorkspaceRow {
                id: (*id).into(),
                name: (*id).to_owned(),
                rate: limit,
                budget: limit,
                today: Today::default(),
                resets_at: Timestamp(0),
            },
            week: vec![0; 7],
        };
        WorkspacesPage {
            now: Timestamp(0),
            resets_at: Timestamp(0),
            rows: ids.iter().map(row).collect(),
            page: 1,
            pages: 1,
            matching: 2,
            totals: Totals::default(),
        }
    }

    #[test]
    fn rows_keep_their_places_while_they_are_the_same_ones() {
        let ids =
            |page: WorkspacesPage| page.rows.iter().map(|row| row.row.id.to_string()).collect::<Vec<_>>();
        assert_eq!(ids(in_the_order_of(&page(&["a", "b"]), page(&["b", "a"]))), ["a", "b"]);
        assert_eq!(ids(in_the_order_of(&page(&["a", "b"]), page(&["c", "a"]))), ["c", "a"]);
        assert_eq!(ids(in_the_order_of(&page(&["a"]), page(&["b", "a"]))), ["b", "a"]);
    }
}
