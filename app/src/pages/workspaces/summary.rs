//! What stands above the list: the sums over all workspaces, and a notice while some are refused.

use leptos::prelude::*;
use tollkeeper::model::fmt::{counted, thousands};
use tollkeeper::model::reports::{NEAR_PERCENT, Totals, WorkspaceFilter, WorkspacesPage, WorkspacesQuery};

use super::query::address;
use crate::components::Fact;

#[component]
pub(super) fn Summary(page: Signal<WorkspacesPage>) -> impl IntoView {
    let totals = Memo::new(move |_| page.read().totals);
    view! {
        <dl class="card facts">
            <Fact
                name="Tokens today"
                value=Signal::derive(move || thousands(totals.read().tokens))
                more=Signal::derive(move || format!("{} yesterday", thousands(totals.read().tokens_yesterday)))
            />
            <Fact
                name="Requests"
                value=Signal::derive(move || thousands(totals.read().requests))
                more=Signal::derive(|| "finished today".to_owned())
            />
            <Fact
                name="Refused"
                value=Signal::derive(move || {
                    let totals = totals.get();
                    thousands(totals.refused_rate.saturating_add(totals.refused_budget))
                })
                more=Signal::derive(move || by_limit(&totals.read()))
            />
            <Fact
                name="Near their budget"
                value=Signal::derive(move || thousands(totals.read().near))
                more=Signal::derive(move || format!("of {}", counted(totals.read().workspaces, "workspace", "workspaces")))
            />
        </dl>
    }
    .into_any()
}

/// Only while there is something to look at.
#[component]
pub(super) fn Refusing(page: Signal<WorkspacesPage>) -> impl IntoView {
    let totals = Memo::new(move |_| page.read().totals);
    let filtered =
        WorkspacesQuery { filter: WorkspaceFilter::Refusing, page: 1, ..WorkspacesQuery::default() };
    let there = StoredValue::new(address(&filtered));
    view! {
        <Show when=move || { totals.read().refusing > 0 }>
            <p class="notice" class:over=move || { totals.read().refused_budget > 0 } class:warn=move || { totals.read().refused_budget == 0 }>
                <strong>{move || counted(totals.read().refusing, "workspace", "workspaces")}</strong>
                <span>{move || format!(" had model requests refused today: {}. ", by_limit(&totals.read()))}</span>
                <a href=there.get_value()>"Show them"</a>
            </p>
        </Show>
    }
    .into_any()
}

/// The kinds of refusal that there were.
fn by_limit(totals: &Totals) -> String {
    let kinds = [(totals.refused_budget, "budget"), (totals.refused_rate, "rate")];
    let told: Vec<String> = kinds
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, limit)| format!("{} by {limit}", thousands(count)))
        .collect();
    if told.is_empty() { "by either limit".to_owned() } else { told.join(", ") }
}

/// The words of a filter, and how many it leaves.
pub(super) fn filter_label(filter: WorkspaceFilter, totals: &Totals) -> (&'static str, u64, String) {
    let near = format!("At or over {NEAR_PERCENT} % of the budget");
    match filter {
        WorkspaceFilter::All => ("All", totals.workspaces, "Every workspace".to_owned()),
        WorkspaceFilter::Near => ("Near limit", totals.near, near),
        WorkspaceFilter::Overridden => {
            ("Overridden", totals.overridden, "With a limit of their own".to_owned())
        }
        WorkspaceFilter::Refusing => ("Refusing", totals.refusing, "Refused a request today".to_owned()),
    }
}
