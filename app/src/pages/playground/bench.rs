//! The page: what to ask on top, what was answered below, limits and the dashboard beside it.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use tollkeeper::model::{LimitState, WorkspaceId};

use super::form::PromptForm;
use super::limits::LimitMeters;
use super::log::Log;
use super::start::Start;
use super::state::State;
use crate::backend::playground::{Playground, playground, preview};
use crate::browser::live::live;
use crate::components::{Alert, Fault, Guard, Need, PageHead, SpecCards, set_status};

#[component]
pub(crate) fn PlaygroundPage() -> impl IntoView {
    view! {
        <Guard need=Need::Models>
            <PageHead title="Playground">"Try what the models make of your sources and dashboards."</PageHead>
            <Loaded />
        </Guard>
    }
}

#[component]
fn Loaded() -> impl IntoView {
    let query = use_query_map();
    let asked = move || {
        let value = |name: &str| query.with(|query| query.get(name).unwrap_or_default());
        (value("source"), value("dashboard"))
    };
    let data = Resource::new_blocking(asked, |(source, dashboard)| playground(source, dashboard));
    view! {
        <Suspense fallback=|| view! { <p class="dim">"Loading"</p> }>
            {move || Suspend::new(async move {
                match data.await {
                    Ok(data) => view! { <Bench data /> }.into_any(),
                    Err(error) => view! { <Fault error=error.0 /> }.into_any(),
                }
            })}
        </Suspense>
    }
}

#[component]
fn Bench(data: Playground) -> impl IntoView {
    if let Some(posted) = &data.posted {
        set_status(posted.status);
    }
    if data.sources.is_empty() && data.dashboards.is_empty() {
        return view! { <Nothing /> }.into_any();
    }
    let seed = data.limits.clone();
    let state = State::new(data);
    let workspace = Memo::new(move |_| state.workspace());
    let address = move || workspace.get().map(|id| format!("/api/live/limits/{id}"));
    let limits = live(seed.map(|(_, limits)| limits), Signal::derive(address));
    // Another limit, or another workspace's, may let through what was refused: the next call will tell.
    Effect::new(move |before: Option<(Option<WorkspaceId>, Option<Caps>)>| {
        let now = (workspace.get(), limits.get().as_ref().map(caps));
        if before.is_some_and(|before| before != now) {
            state.forget_refusal();
        }
        now
    });
    let name = move || workspace.get().map(|id| state.choice.with_value(|choice| choice.workspace_name(&id)));
    view! {
        <div class="bench">
            <div class="stack">
                <section class="card" aria-label="Ask">
                    <PromptForm state />
                </section>
                <div class="refusal">
                    {move || state.refusal.get().map(|sentence| view! { <Alert>{sentence}</Alert> })}
                </div>
                <section class="card conversation" aria-label="Answers">
                    <Show when=move || state.turns.with(Vec::is_empty)>
                        <Start state />
                    </Show>
                    <Log state />
                </section>
            </div>
            <aside class="stack" aria-label="Beside the conversation">
                <section class="card" aria-label="Limits">
                    <header>
                        <h2>"Left of the limits"</h2>
                        <span class="dim small">{name}</span>
                    </header>
                    <LimitMeters state=limits />
                </section>
                <DashboardNow state />
            </aside>
        </div>
    }
    .into_any()
}

/// Requests a minute and tokens a day.
type Caps = (Option<u64>, Option<u64>);

fn caps(limits: &LimitState) -> Caps {
    (limits.rate.map(|rate| rate.limit), limits.budget.map(|budget| budget.limit))
}

/// The dashboard that is chatted about, as it is after the last turn.
#[component]
fn DashboardNow(state: State) -> impl IntoView {
    let shown = Resource::new(
        move || (state.dashboard.get(), state.ended.get()),
        |(id, _)| async move { if id.is_empty() { None } else { preview(id).await.ok() } },
    );
    view! {
        <Transition>
            {move || Suspend::new(async move {
                shown.await.map(|preview| view! {
                    <section class="card now" aria-label="The dashboard now">
                        <header>
                            <h2>"The dashboard now"</h2>
                        </header>
                        {match preview.spec {
                            Some(spec) => view! { <SpecCards spec figures=preview.figures /> }.into_any(),
                            None => view! { <p class="dim">"It has no widgets yet. Ask the model for some."</p> }.into_any(),
                        }}
                    </section>
                })
            })}
        </Transition>
    }
    .into_any()
}

#[component]
fn Nothing() -> impl IntoView {
    view! {
        <section class="card empty">
            <h2>"There is nothing to ask about yet"</h2>
            <p>
                "No workspace in which you may call models has a source or a dashboard. Sources and dashboards come from the directory file: "
                <code>"tollkeeper apply FILE.toml"</code>
            </p>
        </section>
    }
}
