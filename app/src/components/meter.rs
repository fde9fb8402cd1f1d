use leptos::prelude::*;
use tollkeeper::model::fmt::thousands;
use tollkeeper::model::reports::NEAR_PERCENT;

/// A share of a limit in percent, as a bar and a number. Over a hundred the bar is full and the number says more.
#[component]
pub(crate) fn Meter(
    /// What is measured, for those who can't see where it stands.
    name: String,
    percent: u64,
) -> impl IntoView {
    let full = percent.min(100);
    let level = match percent {
        100.. => "meter over",
        NEAR_PERCENT.. => "meter warn",
        _ => "meter",
    };
    let told = format!("{} %", thousands(percent));
    view! {
        <div class=level>
            <div
                role="progressbar"
                aria-label=name
                aria-valuemin="0"
                aria-valuemax="100"
                aria-valuenow=full.to_string()
                aria-valuetext=told.clone()
            >
                <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                    <rect width=full.to_string() height="6" />
                </svg>
            </div>
            <span class="share">{told}</span>
        </div>
    }
}
