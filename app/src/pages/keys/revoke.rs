//! The question before a key is revoked. Without script it stands on the page, with script before it.

use leptos::prelude::*;
use server_fn::ServerFn;
use tollkeeper::model::KeyRow;

use crate::backend::keys::RevokeKey;
use crate::components::{Alert, AskFirst, FormAlert, sentence};

const HERE: &str = "/settings/keys";

#[component]
pub(super) fn RevokeDialog(row: KeyRow, revoke: ServerAction<RevokeKey>) -> impl IntoView {
    let failed = move || revoke.value().get().and_then(Result::err);
    view! {
        <AskFirst title=format!("Revoke \"{}\"?", row.name) back=HERE>
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
        </AskFirst>
    }
    .into_any()
}
