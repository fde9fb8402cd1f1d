//! What is left of both limits.

use leptos::prelude::*;
use tollkeeper::model::fmt::{percent, thousands};
use tollkeeper::model::reports::NEAR_PERCENT;
use tollkeeper::model::{BudgetState, LimitState, RateState};

/// From this share on a limit counts as spent.
const SPENT_PERCENT: u64 = 100;

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
    match rate {
        None => view! { <Unlimited name="Requests a minute" /> }.into_any(),
        Some(rate) => {
            let left = format!("{} of {} left", thousands(rate.remaining), thousands(rate.limit));
            let used = rate.limit.saturating_sub(rate.remaining);
            view! { <Meter name="Requests a minute" used limit=rate.limit value=left note="yours in this workspace" /> }.into_any()
        }
    }
}

#[component]
fn BudgetMeter(budget: Option<BudgetState>) -> impl IntoView {
    match budget {
        None => view! { <Unlimited name="Tokens today" /> }.into_any(),
        Some(budget) => {
            let left = format!("{} of {} left", thousands(budget.remaining()), thousands(budget.limit));
            view! { <Meter name="Tokens today" used=budget.used limit=budget.limit value=left note="the whole workspace's, until 00:00 UTC" /> }
                .into_any()
        }
    }
}

#[component]
fn Meter(name: &'static str, used: u64, limit: u64, value: String, note: &'static str) -> impl IntoView {
    let share = percent(used, limit).min(SPENT_PERCENT);
    let near = (NEAR_PERCENT..SPENT_PERCENT).contains(&share);
    let spent = share >= SPENT_PERCENT;
    view! {
        <div class="meter" class:warn=near class:over=spent>
            <p>
                <span>{name}</span>
                <span class="share">{value.clone()}</span>
            </p>
            <svg
                viewBox="0 0 100 6"
                preserveAspectRatio="none"
                role="progressbar"
                aria-label=name
                aria-valuemin="0"
                aria-valuemax=limit
                aria-valuenow=used.min(limit)
                aria-valuetext=value
            >
                <rect width=share height="6" />
            </svg>
            <p class="dim small">{note}</p>
        </div>
    }
}

#[component]
fn Unlimited(name: &'static str) -> impl IntoView {
    view! {
        <div class="meter">
            <p>
                <span>{name}</span>
                <span class="chip">"disabled"</span>
            </p>
        </div>
    }
}
