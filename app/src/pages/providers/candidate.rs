//! A model under a key: its four windows, and below them what there is to say of it.

use leptos::prelude::*;
use tollkeeper::model::fmt::{span_ms, thousands};
use tollkeeper::model::providers::{CandidateState, CooldownNote, ModelRow, ProvidersPage, Quota, Tested};

use super::Actions;
use crate::components::{QuotaBar, Time};

/// The windows in the order in which they are shown: their names, and the columns'.
const WINDOWS: [(&str, &str); 4] = [
    ("Requests per minute", "Requests / min"),
    ("Requests per day", "Requests / day"),
    ("Tokens per minute", "Tokens / min"),
    ("Tokens per day", "Tokens / day"),
];

#[component]
pub(super) fn Candidate(
    platform: String,
    key: String,
    /// The key's.
    label: String,
    model: ModelRow,
    state: Memo<Option<CandidateState>>,
    page: RwSignal<ProvidersPage>,
    actions: StoredValue<Actions>,
) -> impl IntoView {
    let test = actions.read_value().test;
    let bars = WINDOWS
        .into_iter()
        .enumerate()
        .map(|(at, (name, column))| {
            let quota = Memo::new(move |_| {
                state.read().as_ref().map_or_else(Quota::default, |state| state.windows()[at])
            });
            let name = format!("{name} of {} under key {label}", model.id);
            view! {
                <td class="bar" data-label=column>
                    <QuotaBar name quota />
                </td>
            }
        })
        .collect_view();
    let which = Which { platform, model: model.id.clone(), key, label };
    let noted = which.clone();
    let testing = {
        let which = which.clone();
        move || {
            test.input()
                .read()
                .as_ref()
                .is_some_and(|input| input.model == which.model && input.key == which.key)
        }
    };
    let label = format!("Test key {} with {}", which.label, which.model);
    view! {
        <tr>
            <th scope="row" class="model">
                {model.id.clone()}
                <small class="dim">{(model.settings.alias != model.id).then(|| format!("alias {}", model.settings.alias))}</small>
            </th>
            {bars}
            <td class="number">
                <ActionForm action=test>
                    <WhichFields which />
                    <button class="button" type="submit" aria-label=label>
                        {move || if testing() { "Testing …" } else { "Test" }}
                    </button>
                </ActionForm>
            </td>
        </tr>
        <Notes which=noted state page actions />
    }
    .into_any()
}

/// A candidate, as forms name it.
#[derive(Clone)]
struct Which {
    platform: String,
    model: String,
    key: String,
    label: String,
}

#[component]
fn WhichFields(which: Which) -> impl IntoView {
    view! {
        <input type="hidden" name="platform" value=which.platform />
        <input type="hidden" name="model" value=which.model />
        <input type="hidden" name="key" value=which.key />
    }
}

#[component]
fn Notes(
    which: Which,
    state: Memo<Option<CandidateState>>,
    page: RwSignal<ProvidersPage>,
    actions: StoredValue<Actions>,
) -> impl IntoView {
    let cooldown = Memo::new(move |_| state.read().as_ref().and_then(|state| state.cooldown.clone()));
    let stated = Memo::new(move |_| state.read().as_ref().and_then(stated));
    let tested = Memo::new(move |_| state.read().as_ref().and_then(|state| state.tested.clone()));
    let any = move || cooldown.read().is_some() || stated.read().is_some() || tested.read().is_some();
    let which = StoredValue::new(which);
    let cooling = Memo::new(move |_| cooldown.read().is_some());
    view! {
        <Show when=any>
            <tr class="notes">
                <td colspan="6">
                    <Show when=move || cooling.get()>
                        <div class="row cooling">
                            <span class="chip warn">"cooling down"</span>
                            <span>
                                {move || cooldown.get().map(|cooldown| cooling_words(&which.read_value().platform, cooldown, page))}
                            </span>
                            <ActionForm action=actions.read_value().clear>
                                <WhichFields which=which.get_value() />
                                <button
                                    class="button"
                                    type="submit"
                                    aria-label=which.with_value(|which| format!("Clear the cooldown of {} under key {}", which.model, which.label))
                                >
                                    "Clear"
                                </button>
                            </ActionForm>
                        </div>
                    </Show>
                    {move || stated.get().map(|words| view! { <p>{words}</p> })}
                    <div role="status">{move || tested.get().map(test_words)}</div>
                </td>
            </tr>
        </Show>
    }
    .into_any()
}

fn cooling_words(platform: &str, cooldown: CooldownNote, page: RwSignal<ProvidersPage>) -> AnyView {
    let CooldownNote { until, reason } = cooldown;
    let platform = platform.to_owned();
    match until {
        Some(until) => view! {
            {platform} " " {reason} "; left alone for " {move || span_ms(until.ms_since(page.read().now))} " more."
        }
        .into_any(),
        None => view! { {platform} " " {reason} "; left alone until the key is changed or this is cleared." }.into_any(),
    }
}

/// What the provider says of its limits, where that is none of ours.
fn stated(state: &CandidateState) -> Option<String> {
    let (requests, tokens) = state.stated_otherwise();
    let said: Vec<String> = [(requests, "requests"), (tokens, "tokens")]
        .into_iter()
        .filter_map(|(limit, what)| limit.map(|limit| format!("{} {what}", thousands(limit))))
        .collect();
    (!said.is_empty()).then(|| format!("The provider states limits of its own: {}.", said.join(" and ")))
}

fn test_words(tested: Tested) -> impl IntoView {
    let (class, word) = if tested.ok { ("chip set", "works") } else { ("chip over", "failed") };
    view! {
        <p class="row">
            <span class=class>{word}</span>
            <span>"Tested at " <Time at=tested.at /> " UTC: " {tested.outcome} "."</span>
        </p>
    }
    .into_any()
}
