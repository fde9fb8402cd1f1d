//! Today's numbers, large.

use leptos::prelude::*;
use tollkeeper::model::fmt::{counted, percent, span_ms, thousands};
use tollkeeper::model::reports::{LimitRow, NEAR_PERCENT, WorkspaceDetail};

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
}

#[component]
fn Budget(detail: RwSignal<WorkspaceDetail>) -> impl IntoView {
    let used = Memo::new(move |_| detail.read().row.today.tokens());
    let budget = Memo::new(move |_| detail.read().row.budget.effective);
    let share = Memo::new(move |_| detail.read().row.used_percent());
    let level = move || match share.get() {
        Some(100..) => "over",
        Some(NEAR_PERCENT..) => "warn",
        _ => "",
    };
    let of = move || match budget.get() {
        0 => "no budget".to_owned(),
        budget => format!("of {} tokens", thousands(budget)),
    };
    let bar = move || {
        share.get().map(|share| {
            let width = share.min(100);
            let text = format!("{} of {} tokens, {share} %", thousands(used.get()), thousands(budget.get()));
            view! {
                <svg
                    viewBox="0 0 100 6"
                    preserveAspectRatio="none"
                    role="progressbar"
                    aria-label="Daily token budget used"
                    aria-valuemin="0"
                    aria-valuemax="100"
                    aria-valuenow=width.to_string()
                    aria-valuetext=text
                >
                    <rect width=width.to_string() height="6" />
                </svg>
            }
        })
    };
    view! {
        <div class=move || format!("meter large {}", level())>
            <p>
                <span class="big">{move || thousands(used.get())}</span>
                <span class="share">{move || share.get().map(|share| format!("{share} %"))}</span>
            </p>
            {bar}
            <p>
                <span class="dim">{of}</span>
                <span class="dim">{move || left(budget.get(), used.get())}</span>
            </p>
            <p>
                <small class="dim">{move || provenance(used.get(), detail.read().estimated_tokens)}</small>
            </p>
        </div>
    }
}

/// What is left, or that calls are refused; without a budget there is nothing to say.
fn left(budget: u64, used: u64) -> Option<String> {
    match budget.checked_sub(used) {
        _ if budget == 0 => None,
        None | Some(0) => Some("spent: requests are refused".into()),
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
                <dt>"Refused by the rate"</dt>
                <dd>{count(rate_refused)}</dd>
            </div>
            <div class:refusing=level(budget_refused)>
                <dt>"Refused by the budget"</dt>
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
                    {move || source(&detail.read().row.rate)}
                </dd>
            </div>
            <div>
                <dt>"Daily token budget"</dt>
                <dd>
                    {move || budget(&detail.read().row.budget)} " "
                    {move || source(&detail.read().row.budget)}
                </dd>
            </div>
        </dl>
    }
}

fn rate(limit: &LimitRow) -> String {
    if limit.is_disabled() { "no limit".into() } else { format!("{} / min", thousands(limit.effective)) }
}

fn budget(limit: &LimitRow) -> String {
    if limit.is_disabled() { "no limit".into() } else { thousands(limit.effective) }
}

/// Where a limit comes from.
fn source(limit: &LimitRow) -> impl IntoView + use<> {
    let word = limit.source_word();
    view! { <span class="chip" class:set={word == "override"} class:warn={word == "disabled"}>{word}</span> }
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
            assert_eq!(left(1_000, used).as_deref(), Some("spent: requests are refused"));
        }
    }
}
