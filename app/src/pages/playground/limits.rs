//! What is left of both limits.

use leptos::prelude::*;
use tollkeeper::model::fmt::{percent, thousands};
use tollkeeper::model::{BudgetState, LimitState, RateState};

use crate::components::Meter;

#[component]
pub(super) fn LimitMeters(#[prop(into)] state: Signal<Option<LimitState>>) -> impl IntoView {
    view! {
        <div class="stack">
            {move || state.get().map(|state| view! {
                <RateMeter rate=state.rate />
                <BudgetMeter budget=state.budget />
            })}
        </div>
    }
    .into_any()
}

#[component]
fn RateMeter(rate: Option<RateState>) -> impl IntoView {
    rate.map(|rate| {
        let used = rate.limit.saturating_sub(rate.remaining);
        let left = format!("{} of {} left", thousands(rate.remaining), thousands(rate.limit));
        view! { <Left name="Requests a minute" used=percent(used, rate.limit) left note="Yours in this workspace" /> }
    })
    .map_or_else(|| view! { <Unlimited name="Requests a minute" /> }.into_any(), IntoAny::into_any)
}

#[component]
fn BudgetMeter(budget: Option<BudgetState>) -> impl IntoView {
    budget
        .map(|budget| {
            let used = percent(budget.used, budget.limit);
            let left = format!("{} of {} left", thousands(budget.remaining()), thousands(budget.limit));
            view! { <Left name="Tokens today" used left note="The whole workspace's, until 00:00 UTC" /> }
        })
        .map_or_else(|| view! { <Unlimited name="Tokens today" /> }.into_any(), IntoAny::into_any)
}

#[component]
fn Left(name: &'static str, used: u64, left: String, note: &'static str) -> impl IntoView {
    view! {
        <div class="limit-left">
            <p class="row apart">
                <span>{name}</span>
                <strong>{left}</strong>
            </p>
            <Meter name=format!("{name}, used") percent=used />
            <p class="dim small">{note}</p>
        </div>
    }
}

#[component]
fn Unlimited(name: &'static str) -> impl IntoView {
    view! {
        <p class="row apart">
            <span>{name}</span>
            <span class="chip">"disabled"</span>
        </p>
    }
}
