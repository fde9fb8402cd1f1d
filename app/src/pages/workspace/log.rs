//! This workspace's newest audit lines.

use leptos::prelude::*;
use tollkeeper::model::reports::{AuditLine, WorkspaceDetail};

use crate::account::me;
use crate::components::{Changes, Time};

#[component]
pub(super) fn Log(detail: RwSignal<WorkspaceDetail>) -> impl IntoView {
    let lines = Memo::new(move |_| detail.read().audit.clone());
    let id = detail.read_untracked().row.id.to_string();
    let all = me().is_some_and(|me| me.admin).then(|| {
        view! { <a href=format!("/settings/audit?workspace={id}")>"All of them"</a> }
    });
    view! {
        <section class="card" aria-labelledby="audit">
            <header>
                <h2 id="audit">"Audit"</h2>
                <small class="dim">"times in UTC"</small>
            </header>
            <ol class="log">
                <For each=move || lines.get() key=|line| line.id let:line>
                    <li>{entry(line)}</li>
                </For>
            </ol>
            {move || {
                lines.read().is_empty().then(|| view! { <p class="dim">"Nothing was changed here yet."</p> })
            }}
            <p class="more">{all}</p>
        </section>
    }
    .into_any()
}

fn entry(line: AuditLine) -> impl IntoView {
    view! {
        <p>
            <b>{line.actor}</b>
            " "
            <code>{line.action}</code>
        </p>
        <Time at=line.at />
        <Changes changes=line.changes />
    }
    .into_any()
}
