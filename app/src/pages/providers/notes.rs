//! What is told above the platforms: requests that nobody could serve, what has just been done, and where the
//! candidates come from.

use leptos::prelude::*;
use tollkeeper::model::fmt::counted;
use tollkeeper::model::providers::{PoolSource, ProvidersPage};

use crate::components::{Changes, Time};

/// Only while there is something to look at.
#[component]
pub(super) fn Banner(page: RwSignal<ProvidersPage>) -> impl IntoView {
    let unserved = Memo::new(move |_| page.read().unserved.clone());
    let told = move || {
        let unserved = unserved.get();
        unserved.last.map(|last| {
            view! {
                <div class="notice over">
                    <p>
                        <strong>
                            {counted(unserved.count, "request", "requests")} " of the last hour could not be served."
                        </strong>
                    </p>
                    <p>
                        "The last asked for " <b>{last.asked}</b> " at " <Time at=last.at /> " UTC: " {last.why} "."
                    </p>
                </div>
            }
        })
    };
    view! { <div aria-live="polite">{told}</div> }.into_any()
}

/// The change that led here, from what to what.
#[component]
pub(super) fn DoneNotice(page: RwSignal<ProvidersPage>) -> impl IntoView {
    let line = Memo::new(move |_| page.read().done.clone());
    let told = move || {
        line.get().map(|line| {
            // Of no interest to those who have just typed the rest.
            let changes = line.changes.into_iter();
            let changes =
                changes.filter(|change| !matches!(change.field.as_str(), "position" | "managed")).collect();
            view! {
                <div class="notice">
                    <p>{sentence_of(&line.action)}</p>
                    <Changes changes />
                </div>
            }
        })
    };
    view! { <div role="status">{told}</div> }.into_any()
}

fn sentence_of(action: &str) -> &'static str {
    match action {
        "platform.add" => "The platform is added. Give it a key and a model next.",
        "platform.remove" => "The platform is removed, with its keys and models.",
        "platform-key.add" => "The key is added and in use. It is stored sealed and is not shown again.",
        "platform-key.change" => "The key is changed; the next request obeys it.",
        "platform-key.remove" => "The key is deleted; no request uses it any more.",
        "platform-model.add" => "The model is added; it can be asked for from now on.",
        "platform-model.change" => "The model is changed; the next request obeys it.",
        "platform-model.remove" => "The model is removed; nobody can ask for it any more.",
        "platform-cooldown.clear" => "The cooldown is cleared; the next request may go there.",
        _ => "Done.",
    }
}

/// Where the candidates come from, where that isn't plain to see.
#[component]
pub(super) fn Source(page: RwSignal<ProvidersPage>) -> impl IntoView {
    let from = Memo::new(move |_| page.read().from);
    move || {
        match from.get() {
        PoolSource::Stored => ().into_any(),
        PoolSource::Environment => view! {
            <p class="notice">
                "The first model below is the environment’s (LLM_MODEL). It serves until a platform with a key and a model is added here or applied from a file."
            </p>
        }
        .into_any(),
        PoolSource::Demo => view! {
            <p class="notice">
                "The built-in demo model answers. It serves until a platform with a key and a model is added here or applied from a file."
            </p>
        }
        .into_any(),
        PoolSource::Nothing => view! {
            <section class="card nothing">
                <h2>"No provider yet"</h2>
                <p>
                    "Add a platform here, or write it into a directory file and run " <code>"tollkeeper apply FILE.toml"</code> "."
                </p>
            </section>
        }
        .into_any(),
    }
    }
}
