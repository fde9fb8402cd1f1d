//! A platform: its keys, each with all of the platform's models, and the models' settings.

use leptos::prelude::*;
use leptos_router::location::Url;
use tollkeeper::model::fmt::thousands;
use tollkeeper::model::providers::{ModelRow, PlatformRow, ProvidersPage};

use super::Actions;
use super::key::Key;

/// Each part follows its own share of the row, so that a switch that is turned keeps the focus.
#[component]
pub(super) fn Platform(
    id: String,
    fixed: bool,
    row: Memo<Option<PlatformRow>>,
    page: RwSignal<ProvidersPage>,
    actions: StoredValue<Actions>,
) -> impl IntoView {
    let base_url = Memo::new(move |_| row.read().as_ref().map(|row| row.base_url.clone()));
    let managed = Memo::new(move |_| row.read().as_ref().is_some_and(|row| row.managed));
    let models = Memo::new(move |_| row.read().as_ref().map(|row| row.models.clone()).unwrap_or_default());
    let keys = Memo::new(move |_| {
        let row = row.read();
        row.iter()
            .flat_map(|row| &row.keys)
            .map(|key| (key.id.clone(), key.label.clone()))
            .collect::<Vec<_>>()
    });
    let title = if fixed { "platform-fixed".to_owned() } else { format!("platform-{id}") };
    let platform = StoredValue::new(id.clone());
    let key = move |(id, label): (String, String)| {
        let named = id.clone();
        let enabled = Memo::new(move |_| {
            let row = row.read();
            row.iter().flat_map(|row| &row.keys).any(|key| key.id == named && key.enabled)
        });
        view! { <Key platform=platform.get_value() id label enabled fixed models page actions /> }
    };
    let labelled_by = title.clone();
    view! {
        <section class="card platform" aria-labelledby=labelled_by>
            <header>
                <div>
                    <h2 id=title>{id}</h2>
                    <small class="dim">{move || base_url.get()}</small>
                </div>
                {(!fixed).then(|| view! { <PlatformActions id=platform.get_value() /> })}
            </header>
            <div class="stack">
                <Show when=move || managed.get()>
                    <p class="dim">
                        "A directory file made this platform. What you change here holds until the next "
                        <code>"tollkeeper apply"</code>
                        ", which puts back what the file says; a key that you disable stays disabled."
                    </p>
                </Show>
                <Show when=move || keys.read().is_empty()>
                    <p class="notice warn">"No key yet: without one its models serve no request."</p>
                </Show>
                <Show when=move || models.read().is_empty()>
                    <p class="notice warn">"No model yet: add those that callers may ask for."</p>
                </Show>
                <For each=move || keys.get() key=|(id, _)| id.clone() children=key />
                <Show when=move || !fixed && !models.read().is_empty()>
                    <Models platform=platform.get_value() models />
                </Show>
            </div>
        </section>
    }
    .into_any()
}

#[component]
fn PlatformActions(id: String) -> impl IntoView {
    let of = Url::escape(&id);
    view! {
        <div class="row">
            <a class="button" href=format!("?ask=add-key&platform={of}") aria-label=format!("Add key to {id}")>
                "Add key"
            </a>
            <a class="button" href=format!("?ask=add-model&platform={of}") aria-label=format!("Add model to {id}")>
                "Add model"
            </a>
            <a class="button danger" href=format!("?ask=remove-platform&platform={of}") aria-label=format!("Remove platform {id}")>
                "Remove"
            </a>
        </div>
    }
    .into_any()
}

#[component]
fn Models(platform: String, models: Memo<Vec<ModelRow>>) -> impl IntoView {
    let of = Url::escape(&platform);
    let title = format!("models-{platform}");
    let rows = move || models.get().iter().map(|model| model_row(&of, model)).collect_view();
    view! {
        <div class="models">
            <h3 id=title.clone()>"Models and their limits under each key"</h3>
            <table class="table" aria-labelledby=title>
                <thead>
                    <tr>
                        <th scope="col">"Model"</th>
                        <th scope="col">"Alias"</th>
                        <th scope="col" class="number">"Priority"</th>
                        <th scope="col" class="number">"Requests / min"</th>
                        <th scope="col" class="number">"Requests / day"</th>
                        <th scope="col" class="number">"Tokens / min"</th>
                        <th scope="col" class="number">"Tokens / day"</th>
                        <th scope="col">
                            <span class="visually-hidden">"Actions"</span>
                        </th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn model_row(platform: &str, model: &ModelRow) -> impl IntoView + use<> {
    let at = format!("platform={platform}&model={}", Url::escape(&model.id));
    let limit = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), thousands);
    let ModelRow { id, settings, .. } = model.clone();
    let [rpm, rpd, tpm, tpd] = settings.limits().map(limit);
    view! {
        <tr>
            <th scope="row" class="model">{id.clone()}</th>
            <td class="alias" data-label="Alias">{settings.alias}</td>
            <td class="number" data-label="Priority">{settings.priority.to_string()}</td>
            <td class="number" data-label="Requests / min">{rpm}</td>
            <td class="number" data-label="Requests / day">{rpd}</td>
            <td class="number" data-label="Tokens / min">{tpm}</td>
            <td class="number" data-label="Tokens / day">{tpd}</td>
            <td class="number actions">
                <a class="button" href=format!("?ask=edit-model&{at}") aria-label=format!("Edit {id}")>
                    "Edit"
                </a>
                <a class="button danger" href=format!("?ask=remove-model&{at}") aria-label=format!("Remove {id}")>
                    "Remove"
                </a>
            </td>
        </tr>
    }
    .into_any()
}
