//! Today's numbers, large.

use leptos::prelude::*;
use tollkeeper::model::fmt::{counted, percent, span_ms, thousands};
use tollkeeper::model::reports::{LimitRow, WorkspaceDetail};

use crate::components::{LimitChip, Meter};

#[component]
pub(super) fn TodayCard(detail: RwSignal<WorkspaceDetail>) -> impl IntoView {
    let resets_in = move || {
        let detail = detail.read();
        span_ms(detail.row.resets_at.ms_since(detail.now))
    };
    view! {
        <section class="card today" aria-labelledby="today">
            <header>
                <h2 id="today">"Today"</h2>
                <small class="dim">"resets 00:00 UTC, in " {resets_in}</small>
            </header>
            <Budget detail />
            <Counts detail />
        </section>
    }
    .into_any()
}

#[component]
fn Budget(detail: RwSignal<WorkspaceDetail>) -> impl IntoView {
    let used = Memo::new(move |_| detail.read().row.today.tokens());
    let budget = Memo::new(move |_| detail.read().row.budget.effective);
    let share = Memo::new(move |_| detail.read().row.used_percent());
    let of = move || match budget.get() {
        0 => "no budget".to_owned(),
        budget => format!("of {} tokens", thousands(budget)),
    };
    let bar = move || {
        share.get().map(|percent| view! { <Meter name="Daily token budget used".to_owned() percent /> })
    };
    view! {
        <div class="budget">
            <p>
                <span class="big">{move || thousands(used.get())}</span>
                " "
                <span class="dim">{of}</span>
            </p>
            {bar}
            <p class="row apart">
                <span>{move || left(budget.get(), used.get())}</span>
                <small class="dim">{move || provenance(used.get(), detail.read().estimated_tokens)}</small>
            </p>
        </div>
    }
    .into_any()
}

/// What is left, or that calls are refused; without a budget there is nothing to say.
fn left(budget: u64, used: u64) -> Option<String> {
    match budget.checked_sub(used) {
        _ if budget == 0 => None,
        None | Some(0) => Some("Spent: requests are refused".into()),
        Some(left) => Some(format!("{} left", thousands(left))),
    }
}

/// Where the numbers come from, when not all are the providers' own.
fn provenance(used: u64, estimated: u64) -> Option<String> {
    let estimated = estimated.min(used);
    (estimated > 0).then(|| {
        // What is there at all is never shown as nothing.
        let share = percent(estimated, used).clamp(1, 100);
        format!(
            "{} % reported by providers, {share} % estimated ({})",
            100 - share,
            counted(estimated, "token", "tokens")
        )
    })
}

#[component]
fn Counts(detail: RwSignal<WorkspaceDetail>) -> impl IntoView {
    let count = move |of: fn(&WorkspaceDetail) -> u64| move || thousands(of(&detail.read()));
    let level = move |of: fn(&WorkspaceDetail) -> u64| move || of(&detail.read()) > 0;
    let rate_refused = |detail: &WorkspaceDetail| detail.row.today.refused_rate;
    let budget_refused = |detail: &WorkspaceDetail| detail.row.today.refused_budget;
    view! {
        <dl class="facts">
            <div>
                <dt>"Requests"</dt>
                <dd>{count(|detail| detail.row.today.requests)}</dd>
            </div>
            <div class:refusing=level(rate_refused)>
                <dt>"Refused by rate"</dt>
                <dd>{count(rate_refused)}</dd>
            </div>
            <div class:refusing=level(budget_refused)>
                <dt>"Refused by budget"</dt>
                <dd>{count(budget_refused)}</dd>
            </div>
            <div>
                <dt>"Input tokens"</dt>
                <dd>{count(|detail| detail.row.today.input_tokens)}</dd>
            </div>
            <div>
                <dt>"Output tokens"</dt>
                <dd>{count(|detail| detail.row.today.output_tokens)}</dd>
            </div>
            <div>
                <dt>"Rate per user"</dt>
                <dd>
                    {move || rate(&detail.read().row.rate)} " "
                    {move || view! { <LimitChip limit=detail.read().row.rate /> }}
                </dd>
            </div>
            <div>
                <dt>"Daily token budget"</dt>
                <dd>
                    {move || budget(&detail.read().row.budget)} " "
                    {move || view! { <LimitChip limit=detail.read().row.budget /> }}
                </dd>
            </div>
        </dl>
    }
    .into_any()
}

fn rate(limit: &LimitRow) -> String {
    if limit.is_disabled() { "no limit".into() } else { format!("{} / min", thousands(limit.effective)) }
}

fn budget(limit: &LimitRow) -> String {
    if limit.is_disabled() { "no limit".into() } else { thousands(limit.effective) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_told_and_never_rounded_away() {
        assert_eq!(provenance(1_000, 0), None);
        assert_eq!(
            provenance(100_000, 3_000).as_deref(),
            Some("97 % reported by providers, 3 % estimated (3,000 tokens)")
        );
        assert!(provenance(1_000_000, 1).unwrap().contains("1 % estimated (1 token)"));
    }

    #[test]
    fn a_spent_budget_says_what_happens() {
        assert_eq!(left(0, 5), None);
        assert_eq!(left(1_000, 1).as_deref(), Some("999 left"));
        for used in [1_000, 1_001] {
            assert_eq!(left(1_000, used).as_deref(), Some("Spent: requests are refused"));
        }
    }
}
