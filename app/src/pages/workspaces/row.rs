//! A row: how much is used, of what limit, from where that limit comes, and whether it is getting worse.

use leptos::prelude::*;
use leptos_router::location::Url;
use tollkeeper::model::fmt::thousands;
use tollkeeper::model::reports::{LimitRow, Today, WorkspaceListRow, WorkspaceRow};

use super::query::PAGE;
use crate::components::{LimitChip, Meter, Sparkline};

pub(super) fn cells(listed: WorkspaceListRow) -> impl IntoView {
    let WorkspaceListRow { row, week } = listed;
    let href = format!("{PAGE}/{}", Url::escape(row.id.as_str()));
    view! {
        <th scope="row" class="name">
            <a href=href title=row.name.clone()>
                <bdi>{row.name.clone()}</bdi>
            </a>
            <small class="dim">{row.id.to_string()}</small>
        </th>
        <td class="number" data-label="Tokens today">
            <span>{thousands(row.today.tokens())}</span>
            <small class="dim">{of_budget(&row.budget)}</small>
        </td>
        <td class="budget" data-label="Budget">
            {share(&row)}
            <LimitChip limit=row.budget />
        </td>
        <td class="week" data-label="7 days">
            <Sparkline name="Tokens of the last 7 days".to_owned() values=week />
        </td>
        <td class="number" data-label="Requests">
            {thousands(row.today.requests)}
        </td>
        <td class="number" data-label="Refused">
            {refused(&row.today)}
        </td>
        <td class="number" data-label="Rate per user">
            <span>{rate(&row.rate)}</span>
            <LimitChip limit=row.rate />
        </td>
    }
    .into_any()
}

fn of_budget(budget: &LimitRow) -> String {
    if budget.is_disabled() { "no budget".to_owned() } else { format!("of {}", thousands(budget.effective)) }
}

fn rate(rate: &LimitRow) -> String {
    if rate.is_disabled() { "no limit".to_owned() } else { format!("{} / min", thousands(rate.effective)) }
}

fn share(row: &WorkspaceRow) -> impl IntoView + use<> {
    let name = format!("Budget of {} used", row.name);
    row.used_percent().map(|percent| view! { <Meter name percent /> })
}

/// Each kind of refusal that there was.
fn refused(today: &Today) -> AnyView {
    let kinds = [(today.refused_budget, "budget", "chip over"), (today.refused_rate, "rate", "chip warn")];
    let chips: Vec<_> = kinds
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, kind, class)| view! { <span class=class>{format!("{} {kind}", thousands(count))}</span> })
        .collect();
    if chips.is_empty() { view! { <span class="dim">"0"</span> }.into_any() } else { chips.into_any() }
}
