//! A key: whether it is in use, the day's cap over all models, and each model under it.

use leptos::prelude::*;
use tollkeeper::model::providers::{KeyRow, PlatformRow, ProvidersPage, Quota};

use super::candidate::Candidate;
use super::{Actions, state_of};
use crate::components::QuotaBar;

#[component]
pub(super) fn Key(
    key: KeyRow,
    platform: PlatformRow,
    page: RwSignal<ProvidersPage>,
    actions: Actions,
    /// Whether it can be changed here.
    stored: bool,
) -> impl IntoView {
    let title = format!("key-{}", key.id);
    let day = platform.models.first().map(|model| {
        let state = state_of(page, &platform.id, &key.id, &model.id);
        let quota = Memo::new(move |_| state.get().map_or_else(Quota::default, |state| state.day));
        let name = format!("Requests of key {} today, over all models", key.label);
        view! {
            <div class="day">
                <span class="dim">"Requests today, all models"</span>
                <QuotaBar name quota />
            </div>
        }
    });
    let rows = platform
        .models
        .iter()
        .map(|model| {
            let state = state_of(page, &platform.id, &key.id, &model.id);
            view! { <Candidate key=key.clone() platform=platform.id.clone() model=model.clone() state page actions /> }
        })
        .collect_view();
    let labelled_by = title.clone();
    view! {
        <section class="key" class:off=!key.enabled aria-labelledby=labelled_by>
            <header class="row apart">
                <div class="row">
                    <h3 id=title>"Key " {key.label.clone()}</h3>
                    {if key.enabled {
                        view! { <span class="chip set">"enabled"</span> }.into_any()
                    } else {
                        view! { <span class="chip warn">"disabled"</span> }.into_any()
                    }}
                </div>
                {stored.then(|| view! { <KeyActions key=key.clone() actions /> })}
            </header>
            {day}
            {(!platform.models.is_empty())
                .then(|| {
                    view! {
                        <table class="table candidates">
                            <caption class="visually-hidden">{format!("Models under key {}", key.label)}</caption>
                            <thead>
                                <tr>
                                    <th scope="col">"Model"</th>
                                    <th scope="col">"Requests / min"</th>
                                    <th scope="col">"Requests / day"</th>
                                    <th scope="col">"Tokens / min"</th>
                                    <th scope="col">"Tokens / day"</th>
                                    <th scope="col">
                                        <span class="visually-hidden">"Actions"</span>
                                    </th>
                                </tr>
                            </thead>
                            <tbody>{rows}</tbody>
                        </table>
                    }
                })}
        </section>
    }
    .into_any()
}

#[component]
fn KeyActions(key: KeyRow, actions: Actions) -> impl IntoView {
    let (id, label) = (key.id, key.label);
    let (verb, other) = if key.enabled { ("Disable", "false") } else { ("Enable", "true") };
    let rotate = format!("?ask=rotate-key&key={id}");
    let remove = format!("?ask=remove-key&key={id}");
    let [switch_label, rotate_label, remove_label] =
        [verb, "Rotate", "Delete"].map(|verb| format!("{verb} key {label}"));
    view! {
        <div class="row">
            <ActionForm action=actions.enable_key>
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="enabled" value=other />
                <button class="button" type="submit" aria-label=switch_label>
                    {verb}
                </button>
            </ActionForm>
            <a class="button" href=rotate aria-label=rotate_label>
                "Rotate"
            </a>
            <a class="button danger" href=remove aria-label=remove_label>
                "Delete"
            </a>
        </div>
    }
    .into_any()
}
