//! Settings → Keys: API keys made, shown once, listed and revoked.

mod create;
mod revoke;
mod table;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use self::create::{CreateCard, NewKeyNotice};
use self::revoke::RevokeDialog;
use self::table::KeysTable;
use crate::backend::keys::{CreateKey, Keys, RevokeKey, keys};
use crate::components::{Fault, Guard, Need, PageHead, set_status};

#[component]
pub(crate) fn KeysPage() -> impl IntoView {
    view! {
        <Guard need=Need::Models>
            <PageHead title="Keys">
                "Programs call models at " <code>"/v1"</code> " with a key, as its owner, in one workspace."
            </PageHead>
            <KeysLoaded />
        </Guard>
    }
}

#[component]
fn KeysLoaded() -> impl IntoView {
    let query = use_query_map();
    let page = move || query.with(|query| query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1));
    let create = ServerAction::<CreateKey>::new();
    let revoke = ServerAction::<RevokeKey>::new();
    let list = Resource::new_blocking(
        move || (page(), create.version().get(), revoke.version().get()),
        |(page, ..)| keys(page),
    );
    view! {
        <Transition fallback=|| view! { <p class="dim">"Loading"</p> }>
            {move || Suspend::new(async move {
                match list.await {
                    Ok(keys) => view! { <KeysView keys create revoke /> }.into_any(),
                    Err(error) => view! { <Fault error=error.0 /> }.into_any(),
                }
            })}
        </Transition>
    }
}

#[component]
fn KeysView(keys: Keys, create: ServerAction<CreateKey>, revoke: ServerAction<RevokeKey>) -> impl IntoView {
    if let Some(Err(error)) = &keys.posted {
        set_status(error.status());
    }
    let query = use_query_map();
    let asked = {
        let rows = keys.rows.clone();
        Memo::new(move |_| {
            let id = query.with(|query| query.get("revoke"))?;
            rows.iter().find(|row| row.id == id && row.revoked_at.is_none()).cloned()
        })
    };
    let revoked = move || query.with(|query| query.get("revoked").is_some());
    // What was made by script comes after what the page came with.
    let posted = keys.posted.clone();
    let made = move || match create.value().get() {
        Some(result) => Some(result.map_err(|error| error.0)),
        None => posted.clone(),
    };
    view! {
        <div class="stack">
            <div role="status">
                {move || revoked().then(|| view! { <p class="notice">"The key is revoked. Programs that use it are refused from now on."</p> })}
            </div>
            {move || asked.get().map(|row| view! { <RevokeDialog row revoke /> })}
            <NewKeyNotice made=Signal::derive(made) />
            <KeysTable keys=keys.clone() />
            <CreateCard keys create />
        </div>
    }
    .into_any()
}
