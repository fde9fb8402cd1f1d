//! Settings → Providers: every platform, key and model with what counts against its limits, and their settings.
//!
//! The server renders the page; from then on one stream tells what changes. Questions before a change and the
//! forms of new records stand in the address (`?ask=…`), so that they work without script.

mod ask;
mod candidate;
mod key;
mod model_form;
mod notes;
mod platform;
mod summary;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use server_fn::ServerFn;
use tollkeeper::model::providers::{CandidateState, ProvidersPage as Page};

use self::ask::{Ask, Asked};
use self::notes::{Banner, DoneNotice, Source};
use self::platform::Platform;
use self::summary::Summary;
use crate::backend::providers::{
    AddPlatform, AddProviderKey, AddProviderModel, ClearCooldown, EditProviderModel, EnableProviderKey,
    RemovePlatform, RemoveProviderKey, RemoveProviderModel, RotateProviderKey, TestProviderKey, providers,
};
use crate::browser::live::follow;
use crate::components::{Alert, Fault, FormAlert, Guard, Hatch, Need, PageHead, sentence};

const HERE: &str = "/settings/providers";

#[component]
pub(crate) fn ProvidersPage() -> impl IntoView {
    view! {
        <Guard need=Need::Admin>
            <Providers />
        </Guard>
    }
    .into_any()
}

#[component]
fn Providers() -> impl IntoView {
    let query = use_query_map();
    let done =
        Memo::new(move |_| query.with(|query| query.get_str("done").and_then(|id| id.parse::<i64>().ok())));
    // Read once: what comes later is told by the stream, and what was done is read when it was.
    let first = Resource::new_blocking(|| (), move |()| providers(done.get_untracked()));
    view! {
        <Suspense fallback=|| view! { <p class="dim">"Loading …"</p> }>
            {move || Suspend::new(async move {
                match first.await {
                    Ok(page) => view! { <Pool page done /> }.into_any(),
                    Err(error) => view! { <Fault error=error.0 /> }.into_any(),
                }
            })}
        </Suspense>
    }
    .into_any()
}

/// The forms of the page, one action each.
#[derive(Clone, Copy)]
struct Actions {
    add_platform: ServerAction<AddPlatform>,
    remove_platform: ServerAction<RemovePlatform>,
    add_key: ServerAction<AddProviderKey>,
    rotate_key: ServerAction<RotateProviderKey>,
    enable_key: ServerAction<EnableProviderKey>,
    remove_key: ServerAction<RemoveProviderKey>,
    add_model: ServerAction<AddProviderModel>,
    edit_model: ServerAction<EditProviderModel>,
    remove_model: ServerAction<RemoveProviderModel>,
    clear: ServerAction<ClearCooldown>,
    test: ServerAction<TestProviderKey>,
}

impl Actions {
    fn new() -> Self {
        Self {
            add_platform: ServerAction::new(),
            remove_platform: ServerAction::new(),
            add_key: ServerAction::new(),
            rotate_key: ServerAction::new(),
            enable_key: ServerAction::new(),
            remove_key: ServerAction::new(),
            add_model: ServerAction::new(),
            edit_model: ServerAction::new(),
            remove_model: ServerAction::new(),
            clear: ServerAction::new(),
            test: ServerAction::new(),
        }
    }
}

#[component]
fn Pool(page: Page, done: Memo<Option<i64>>) -> impl IntoView {
    let page = RwSignal::new(page);
    let lost = follow(Signal::derive(|| Some("/api/live/providers".to_owned())), move |_, told: Page| {
        let _ = page.try_update(|page| *page = Page { done: page.done.take(), ..told });
    });
    tell_what_was_done(page, done);
    let forms = Actions::new();
    let actions = StoredValue::new(forms);
    let query = use_query_map();
    // The settings alone: while numbers tick, nothing is made anew under the reader's hands.
    let platforms = Memo::new(move |_| page.read().platforms.clone());
    // What the environment or the demo gives may have a stored one's id.
    let ids = Memo::new(move |_| {
        platforms.read().iter().map(|platform| (platform.fixed, platform.id.clone())).collect::<Vec<_>>()
    });
    let asked = Memo::new(move |_| Ask::of(&query.read(), &platforms.read()));
    let refused = move || {
        let clear = forms.clear.value().get().and_then(Result::err);
        let test = forms.test.value().get().and_then(Result::err);
        let enable = forms.enable_key.value().get().and_then(Result::err);
        clear.or(test).or(enable)
    };
    view! {
        <PageHead title="Providers">
            <div class="row apart providers-lead">
                <p>
                    "A model under a key is a candidate. A call goes to one that has room in all its windows, and on to the next where it fails. Hatched is what calls in flight hold."
                </p>
                <a class="button" href="?ask=add-platform">
                    "Add platform"
                </a>
            </div>
            <p class="lost" role="status">
                {move || lost.get().then_some("The connection is lost: figures may be old. Connecting again …")}
            </p>
        </PageHead>
        <Hatch />
        <div class="stack providers">
            <Banner page />
            <DoneNotice page />
            <FormAlert function=ClearCooldown::PATH />
            <FormAlert function=TestProviderKey::PATH />
            <FormAlert function=EnableProviderKey::PATH />
            {move || refused().map(|error| view! { <Alert>{sentence(&error.0)}</Alert> })}
            {move || asked.get().map(|ask| view! { <Asked ask actions /> })}
            <Source page />
            <Summary page />
            <For
                each=move || ids.get()
                key=Clone::clone
                children=move |(fixed, id)| {
                    let named = id.clone();
                    let row = Memo::new(move |_| {
                        let platforms = platforms.read();
                        platforms.iter().find(|row| row.fixed == fixed && row.id == named).cloned()
                    });
                    view! { <Platform id fixed row page actions /> }
                }
            />
        </div>
    }
    .into_any()
}

/// Another address may name another change.
fn tell_what_was_done(page: RwSignal<Page>, done: Memo<Option<i64>>) {
    Effect::new(move |before: Option<Option<i64>>| {
        let now = done.get();
        if before.is_some_and(|before| before != now) {
            leptos::task::spawn_local(async move {
                if let Ok(told) = providers(now).await {
                    let _ = page.try_set(told);
                }
            });
        }
        now
    });
}

/// How a model under a key stands, as a signal of its own.
fn state_of(page: RwSignal<Page>, platform: &str, key: &str, model: &str) -> Memo<Option<CandidateState>> {
    let (platform, key, model) = (platform.to_owned(), key.to_owned(), model.to_owned());
    Memo::new(move |_| {
        let page = page.read();
        let is =
            |state: &&CandidateState| state.key == key && state.model == model && state.platform == platform;
        page.candidates.iter().find(is).cloned()
    })
}
