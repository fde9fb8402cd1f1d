use leptos::prelude::*;
use tollkeeper::model::fmt::{percent, thousands};
use tollkeeper::model::providers::Quota;
use tollkeeper::model::reports::NEAR_PERCENT;

/// A count against its limit: what is used, and hatched on top what calls in flight hold.
#[component]
pub(crate) fn QuotaBar(
    /// What is counted, for those who can't see where it stands.
    #[prop(into)]
    name: String,
    quota: Memo<Quota>,
) -> impl IntoView {
    let name = StoredValue::new(name);
    let bar = move |limit: u64| {
        let share = move |n: u64| percent(n, limit).min(100);
        let used = move || share(quota.get().used);
        let taken = move || share(quota.get().used.saturating_add(quota.get().in_flight));
        view! {
            <div
                role="progressbar"
                aria-label=name.get_value()
                aria-valuemin="0"
                aria-valuemax=limit.to_string()
                aria-valuenow=move || quota.get().used.min(limit).to_string()
                aria-valuetext=move || told(quota.get())
            >
                <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                    <rect width=move || used().to_string() height="6" />
                    <rect
                        class="in-flight"
                        x=move || used().to_string()
                        width=move || taken().saturating_sub(used()).to_string()
                        height="6"
                        fill="url(#hatch)"
                    />
                </svg>
            </div>
        }
        .into_any()
    };
    let limit = Memo::new(move |_| quota.get().limit);
    let level = move || match quota.get() {
        Quota { limit: None, .. } => "meter quota",
        Quota { used, limit: Some(limit), .. } => match percent(used, limit) {
            100.. => "meter quota over",
            NEAR_PERCENT.. => "meter quota warn",
            _ => "meter quota",
        },
    };
    view! {
        <div class=level>
            <p>
                <span class="share">{move || counted(quota.get())}</span>
                <small class="dim">{move || held(quota.get())}</small>
            </p>
            {move || match limit.get() {
                Some(limit) => bar(limit),
                None => view! { <span class="no-limit" aria-hidden="true"></span> }.into_any(),
            }}
        </div>
    }
    .into_any()
}

fn counted(quota: Quota) -> String {
    match quota.limit {
        Some(limit) => format!("{} of {}", thousands(quota.used), thousands(limit)),
        None => format!("{}, unlimited", thousands(quota.used)),
    }
}

/// Short, so that a row keeps its height while calls come and go.
fn held(quota: Quota) -> Option<impl IntoView> {
    let number = thousands(quota.in_flight);
    (quota.in_flight > 0).then(|| {
        view! {
            "+ "
            {number}
            <span class="visually-hidden">" in flight"</span>
        }
    })
}

fn told(quota: Quota) -> String {
    let counted = counted(quota);
    if quota.in_flight == 0 {
        counted
    } else {
        format!("{counted}, {} in flight", thousands(quota.in_flight))
    }
}

/// The hatching that bars refer to: once a page.
#[component]
pub(crate) fn Hatch() -> impl IntoView {
    view! {
        <svg class="visually-hidden" width="0" height="0" aria-hidden="true">
            <defs>
                <pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                    <rect class="hatch" width="2" height="4" />
                </pattern>
            </defs>
        </svg>
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_with_their_limit_and_what_is_held() {
        let quota = Quota { used: 1_200, in_flight: 2, limit: Some(4_000) };
        assert_eq!(told(quota), "1,200 of 4,000, 2 in flight");
        assert_eq!(told(Quota { in_flight: 0, limit: None, ..quota }), "1,200, unlimited");
    }
}
