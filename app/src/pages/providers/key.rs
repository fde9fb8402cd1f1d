//! A key: whether it is in use, the day's cap over all models, and each model under it.

use leptos::prelude::*;
use tollkeeper::model::providers::{ModelRow, ProvidersPage, Quota};

use super::candidate::Candidate;
use super::{Actions, state_of};
use crate::components::QuotaBar;

#[component]
pub(super) fn Key(
    platform: String,
    id: String,
    label: String,
    enabled: Memo<bool>,
    /// Whether it can't be changed here.
    fixed: bool,
    models: Memo<Vec<ModelRow>>,
    page: RwSignal<ProvidersPage>,
    actions: StoredValue<Actions>,
) -> impl IntoView {
    let title = format!("key-{id}");
    let of = StoredValue::new((platform, id.clone(), label.clone()));
    let day = move || {
        let models = models.read();
        let model = models.first()?;
        let (platform, id, label) = of.get_value();
        let state = state_of(page, &platform, &id, &model.id);
        let quota = Memo::new(move |_| state.get().map_or_else(Quota::default, |state| state.day));
        let name = format!("Requests of key {label} today, over all models");
        Some(view! {
            <div class="day">
                <span class="dim">"Requests today"</span>
                <QuotaBar name quota />
            </div>
        })
    };
    let rows = move || {
        let models = models.get().into_iter();
        let rows = models.map(|model| {
            let (platform, key, label) = of.get_value();
            let state = state_of(page, &platform, &key, &model.id);
            view! { <Candidate platform key label model state page actions /> }
        });
        rows.collect_view()
    };
    let caption = format!("Models under key {label}");
    let labelled_by = title.clone();
    view! {
        <section class="key" class:off=move || !enabled.get() aria-labelledby=labelled_by>
            <header>
                <div class="row">
                    <h3 id=title>"Key " {label.clone()}</h3>
                    {(!fixed).then(|| view! { <Switch id=id.clone() label=label.clone() enabled actions /> })}
                </div>
                {day}
                {(!fixed).then(|| view! { <KeyActions id label /> })}
            </header>
            <Show when=move || !models.read().is_empty()>
                <table class="table candidates">
                    <caption class="visually-hidden">{caption.clone()}</caption>
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
            </Show>
        </section>
    }
    .into_any()
}

/// In use or not; turned, it asks the server, whose answer moves it.
#[component]
fn Switch(id: String, label: String, enabled: Memo<bool>, actions: StoredValue<Actions>) -> impl IntoView {
    view! {
        <ActionForm action=actions.read_value().enable_key>
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="enabled" value=move || (!enabled.get()).to_string() />
            <button
                class="switch"
                type="submit"
                role="switch"
                aria-checked=move || enabled.get().to_string()
                aria-label=format!("Use key {label}")
            ></button>
        </ActionForm>
        <span class="dim">{move || if enabled.get() { "in use" } else { "disabled" }}</span>
    }
    .into_any()
}

#[component]
fn KeyActions(id: String, label: String) -> impl IntoView {
    let rotate = format!("?ask=rotate-key&key={id}");
    let remove = format!("?ask=remove-key&key={id}");
    view! {
        <div class="row">
            <a class="button" href=rotate aria-label=format!("Rotate key {label}")>
                "Rotate"
            </a>
            <a class="button danger" href=remove aria-label=format!("Delete key {label}")>
                "Delete"
            </a>
        </div>
    }
    .into_any()
}
