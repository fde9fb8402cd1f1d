//! A platform: its keys, each with all of the platform's models, and the models' settings.

use leptos::prelude::*;
use leptos_router::location::Url;
use tollkeeper::model::fmt::thousands;
use tollkeeper::model::providers::{ModelRow, PlatformRow, ProvidersPage};

use super::key::Key;
use super::{Actions, is_stored};

#[component]
pub(super) fn Platform(row: PlatformRow, page: RwSignal<ProvidersPage>, actions: Actions) -> impl IntoView {
    let stored = is_stored(page, &row);
    let of = Url::escape(&row.id);
    let title = format!("platform-{}", row.id);
    let keys = row
        .keys
        .iter()
        .map(|key| view! { <Key key=key.clone() platform=row.clone() page actions stored /> })
        .collect_view();
    let no_key = row.keys.is_empty().then(|| {
        view! { <p class="notice warn">"No key yet: without one its models serve no request."</p> }
    });
    let no_model = row.models.is_empty().then(|| {
        view! { <p class="notice warn">"No model yet: add those that callers may ask for."</p> }
    });
    let labelled_by = title.clone();
    view! {
        <section class="card platform" aria-labelledby=labelled_by>
            <header>
                <div>
                    <h2 id=title>{row.id.clone()}</h2>
                    <small class="dim">{row.base_url.clone()}</small>
                </div>
                {stored
                    .then(|| {
                        view! {
                            <div class="row">
                                <a class="button" href=format!("?ask=add-key&platform={of}") aria-label=format!("Add key to {}", row.id)>
                                    "Add key"
                                </a>
                                <a
                                    class="button"
                                    href=format!("?ask=add-model&platform={of}")
                                    aria-label=format!("Add model to {}", row.id)
                                >
                                    "Add model"
                                </a>
                                <a
                                    class="button danger"
                                    href=format!("?ask=remove-platform&platform={of}")
                                    aria-label=format!("Remove platform {}", row.id)
                                >
                                    "Remove"
                                </a>
                            </div>
                        }
                    })}
            </header>
            <div class="stack">
                {row
                    .managed
                    .then(|| {
                        view! {
                            <p class="dim">
                                "A directory file made this platform. What you change here holds until the next "
                                <code>"tollkeeper apply"</code>
                                ", which puts back what the file says; a key that you disable stays disabled."
                            </p>
                        }
                    })}
                {no_key}
                {no_model}
                {keys}
                {(stored && !row.models.is_empty()).then(|| view! { <Models row /> })}
            </div>
        </section>
    }
    .into_any()
}

#[component]
fn Models(row: PlatformRow) -> impl IntoView {
    let of = Url::escape(&row.id);
    let title = format!("models-{}", row.id);
    let rows = row.models.iter().map(|model| model_row(&of, model)).collect_view();
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
            <td data-label="Alias">{settings.alias}</td>
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
