//! Making a key, and showing it the one time it is shown.

use leptos::ev::SubmitEvent;
use leptos::html::Form;
use leptos::prelude::*;
use tollkeeper::model::Error;

use crate::backend::keys::{CreateKey, Keys, NewKey};
use crate::components::{Alert, Button, Field, sentence};

/// Days until a key ends, and how the choice is named.
const EXPIRIES: [(&str, &str); 5] =
    [("", "Never"), ("7", "In 7 days"), ("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year")];

#[component]
pub(super) fn CreateCard(keys: Keys, create: ServerAction<CreateKey>) -> impl IntoView {
    let submit = move |event: SubmitEvent| {
        if let Ok(made) = CreateKey::from_event(&event) {
            event.prevent_default();
            create.dispatch(made);
        }
    };
    // A key that was made leaves the form ready for the next.
    let form = NodeRef::<Form>::new();
    Effect::new(move || {
        if let (Some(Ok(_)), Some(form)) = (create.value().get(), form.get_untracked()) {
            form.reset();
        }
    });
    let selected = keys.selected;
    let workspaces = keys
        .workspaces
        .into_iter()
        .map(|(id, name)| {
            view! { <option value=id.to_string() selected=selected.as_ref() == Some(&id)>{name}</option> }
        })
        .collect_view();
    let expiries = EXPIRIES.map(|(days, words)| view! { <option value=days>{words}</option> }).collect_view();
    view! {
        <section class="card" aria-labelledby="make">
            <header>
                <h2 id="make">"Make a key"</h2>
            </header>
            // Without script the page itself answers, so that the key is in no address and stored nowhere.
            <form class="form across" method="post" action="/settings/keys" on:submit=submit node_ref=form>
                <Field label="Name" name="name" />
                <div class="field">
                    <label for="key-workspace">"Workspace"</label>
                    <select id="key-workspace" name="workspace" required>{workspaces}</select>
                </div>
                <div class="field">
                    <label for="days">"Expires"</label>
                    <select id="days" name="days">{expiries}</select>
                </div>
                <Button primary=true>"Create key"</Button>
            </form>
        </section>
    }
    .into_any()
}

/// The key that was just made, or why none was.
#[component]
pub(super) fn NewKeyNotice(made: Signal<Option<Result<NewKey, Error>>>) -> impl IntoView {
    view! {
        {move || made.get().map(|made| match made {
            Ok(made) => view! { <NewKeyCard made /> }.into_any(),
            Err(error) => view! { <Alert>{sentence(&error)}</Alert> }.into_any(),
        })}
    }
    .into_any()
}

#[component]
fn NewKeyCard(made: NewKey) -> impl IntoView {
    let copied = RwSignal::new("");
    let key = StoredValue::new(made.key.clone());
    let copy = move |_| {
        leptos::task::spawn_local(async move {
            let written = window().navigator().clipboard().write_text(&key.get_value());
            let result = wasm_bindgen_futures::JsFuture::from(written).await;
            // Browsers forbid it to pages that came over plain HTTP from elsewhere.
            copied.set(if result.is_ok() {
                "Copied."
            } else {
                "Copying is not allowed here; select the key and copy it."
            });
        });
    };
    view! {
        <section class="card new-key" aria-labelledby="new-key-title">
            <h2 id="new-key-title">"Copy the key \"" {made.name} "\" now"</h2>
            <p>"It is shown this once and not stored. Lost, it can only be replaced."</p>
            <div class="row">
                <input id="new-key" aria-label="New API key" class="secret" readonly value=made.key autocomplete="off" />
                <button class="button needs-script" type="button" on:click=copy>"Copy"</button>
            </div>
            <p class="dim small" role="status">{move || copied.get()}</p>
        </section>
    }
    .into_any()
}
