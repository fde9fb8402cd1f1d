//! The question before a key is revoked. Without script it stands on the page, with script before it.

use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use server_fn::ServerFn;
use tollkeeper::model::KeyRow;

use crate::backend::keys::RevokeKey;
use crate::components::{Alert, FormAlert, sentence};

const HERE: &str = "/settings/keys";

#[component]
pub(super) fn RevokeDialog(row: KeyRow, revoke: ServerAction<RevokeKey>) -> impl IntoView {
    let dialog = NodeRef::<Dialog>::new();
    Effect::new(move || {
        if let Some(dialog) = dialog.get() {
            // It came open but not modal, as it has to be without script.
            dialog.close();
            let _ = dialog.show_modal();
        }
    });
    let navigate = use_navigate();
    // Escape.
    let cancelled = move |_: web_sys::Event| {
        navigate(HERE, NavigateOptions { replace: true, scroll: false, ..Default::default() });
    };
    let failed = move || revoke.value().get().and_then(Result::err);
    view! {
        <dialog class="card ask-first" open aria-labelledby="revoke-title" node_ref=dialog on:cancel=cancelled>
            <h2 id="revoke-title">"Revoke \"" {row.name} "\"?"</h2>
            <p>
                "Programs that call models with " <code>{row.hint} "…"</code> " are refused from then on. A revoked key can't be brought back."
            </p>
            <dl class="before-after">
                <div>
                    <dt>"Now"</dt>
                    <dd>"active"</dd>
                </div>
                <div>
                    <dt>"Then"</dt>
                    <dd>"revoked"</dd>
                </div>
            </dl>
            <FormAlert function=RevokeKey::PATH />
            {move || failed().map(|error| view! { <Alert>{sentence(&error.0)}</Alert> })}
            <ActionForm action=revoke>
                <input type="hidden" name="id" value=row.id />
                <div class="row end">
                    <a class="button" href=HERE>"Keep it"</a>
                    <button class="button danger" type="submit">"Revoke key"</button>
                </div>
            </ActionForm>
        </dialog>
    }
    .into_any()
}
