//! A workspace: today's usage against its limits, the form that changes them, who and what used it, the last
//! 30 days, and what was changed by whom.

pub(crate) mod address;
mod limit_field;
mod limits;
mod log;
mod parts;
mod today;

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

use crate::backend::workspace::{WorkspaceView, read_workspace};
use crate::browser::live::follow;
use crate::components::{DayChart, Fault, Guard, Need, PageHead};
use limits::{LimitsCard, LimitsInForce};
use log::Log;
use parts::WhoAndWhat;
use today::TodayCard;

#[component]
pub(crate) fn WorkspacePage() -> impl IntoView {
    view! {
        <Guard need=Need::Settings>
            <Loaded />
        </Guard>
    }
}

#[component]
fn Loaded() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.read().get("id").unwrap_or_default());
    let workspace = Resource::new_blocking(move || id.get(), read_workspace);
    view! {
        <Suspense>
            {move || Suspend::new(async move {
                match workspace.await {
                    Ok(view) => view! { <Workspace view /> }.into_any(),
                    Err(error) => view! { <Fault error=error.0 /> }.into_any(),
                }
            })}
        </Suspense>
    }
}

#[component]
fn Workspace(view: WorkspaceView) -> impl IntoView {
    let WorkspaceView { detail, may_edit } = view;
    let (id, name) = (detail.row.id.to_string(), detail.row.name.clone());
    let detail = RwSignal::new(detail);
    let stream = format!("/api/live/workspaces/{id}");
    let lost = follow(Signal::stored(Some(stream)), move |_, told| {
        let _ = detail.try_set(told);
    });
    let days = Memo::new(move |_| detail.read().days.clone());
    let budget = Memo::new(move |_| detail.read().row.budget.effective);
    let query = use_query_map().get_untracked();
    view! {
        <PageHead title=name>
            <a href="/settings/workspaces">"Workspaces"</a>
            " / "
            <code>{id}</code>
            <p class="lost" role="status">
                {move || lost.get().then_some("The connection is lost: figures may be old. Connecting again …")}
            </p>
        </PageHead>
        <div class="workspace">
            <TodayCard detail />
            <div class="stack limits-and-log">
                {if may_edit {
                    view! { <LimitsCard detail query /> }.into_any()
                } else {
                    view! { <LimitsInForce detail /> }.into_any()
                }}
                <Log detail />
            </div>
            <div class="stack">
                <section class="card" aria-labelledby="days">
                    <header>
                        <h2 id="days">"Last 30 days"</h2>
                        <small class="dim">"tokens a UTC day"</small>
                    </header>
                    <DayChart days budget />
                </section>
                <WhoAndWhat detail />
            </div>
        </div>
    }
    .into_any()
}
