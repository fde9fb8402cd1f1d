//! What to ask, and of what.

use leptos::ev::{KeyboardEvent, SubmitEvent};
use leptos::prelude::*;
use tollkeeper::model::fmt::span_ms;

use super::state::State;
use crate::backend::playground::Entry;

const PROMPT_ROWS: &str = "3";

#[component]
pub(super) fn PromptForm(state: State) -> impl IntoView {
    let choice = state.choice;
    let (sources, dashboards) = choice.with_value(|choice| {
        let sources: Vec<Entry> = choice
            .sources
            .iter()
            .map(|source| choice.entry(&source.id, &source.name, &source.workspace))
            .collect();
        let dashboards: Vec<Entry> =
            choice.dashboards.iter().map(|row| choice.entry(&row.id, &row.name, &row.workspace)).collect();
        (sources, dashboards)
    });
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        state.send();
    };
    let key = move |event: KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            state.send();
        }
    };
    let chats = move || !state.dashboard.with(String::is_empty);
    let waits = move || state.is_busy() || state.wait.is_on();
    view! {
        // Without script the form is answered by the page itself, at its own address.
        <form class="form ask" method="post" action="/playground" on:submit=submit>
            <div class="pair">
                <div class="field">
                    <label for="source">"Source"</label>
                    <select
                        id="source"
                        name="source"
                        on:change=move |event| state.choose_source(event_target_value(&event))
                        prop:value=move || state.source.get()
                    >
                        <option value="">"None"</option>
                        <Options entries=sources chosen=state.source />
                    </select>
                </div>
                <div class="field">
                    <label for="dashboard">"Dashboard"</label>
                    <select
                        id="dashboard"
                        name="dashboard"
                        on:change=move |event| state.choose_dashboard(event_target_value(&event))
                        prop:value=move || state.dashboard.get()
                    >
                        <option value="">"None: generate a new one"</option>
                        <Options entries=dashboards chosen=state.dashboard />
                    </select>
                </div>
            </div>
            <p class="dim small">
                {move || {
                    if chats() {
                        "Chats with the model about this dashboard. It can read the source and change the dashboard."
                    } else {
                        "Generates a dashboard for the source alone. Nothing is saved."
                    }
                }}
            </p>
            <div class="field">
                <label for="prompt">"Prompt"</label>
                <textarea
                    id="prompt"
                    name="prompt"
                    rows=PROMPT_ROWS
                    maxlength="20000"
                    aria-describedby="prompt-hint"
                    aria-invalid=move || state.fault.with(Option::is_some).then_some("true")
                    prop:value=move || state.prompt.get()
                    on:input=move |event| {
                        state.fault.set(None);
                        state.prompt.set(event_target_value(&event));
                    }
                    on:keydown=key
                >
                    {state.prompt.get_untracked()}
                </textarea>
                <p id="prompt-hint" class="hint-line">
                    <span class="error" role="status">{move || state.fault.get()}</span>
                    <span class="hint needs-script"><kbd>"Ctrl"</kbd>"+"<kbd>"Enter"</kbd>" sends"</span>
                </p>
            </div>
            <div class="row apart">
                <p class="wait" aria-live="off">
                    {move || state.wait.left_ms().map(|left| match left {
                        0 => "You can send again now.".to_owned(),
                        left => format!("You can send again in {}.", span_ms(left)),
                    })}
                </p>
                <div class="row">
                    <button
                        class="button needs-script"
                        type="button"
                        disabled=move || !state.is_busy()
                        on:click=move |_| state.stop()
                    >
                        "Stop"
                    </button>
                    <button class="button primary" type="submit" disabled=waits>
                        "Send"
                    </button>
                </div>
            </div>
        </form>
    }
    .into_any()
}

/// Records under the names of their workspaces, where there are several.
#[component]
fn Options(entries: Vec<Entry>, chosen: RwSignal<String>) -> impl IntoView {
    let first = chosen.get_untracked();
    let mut groups: Vec<(String, Vec<Entry>)> = Vec::new();
    for entry in entries {
        match groups.iter_mut().find(|(name, _)| *name == entry.workspace) {
            Some((_, group)) => group.push(entry),
            None => groups.push((entry.workspace.clone(), vec![entry])),
        }
    }
    let several = groups.len() > 1;
    groups
        .into_iter()
        .map(|(workspace, entries)| {
            let options = entries
                .into_iter()
                .map(|entry| {
                    let selected = entry.id == first;
                    view! { <option value=entry.id selected=selected>{entry.name}</option> }
                })
                .collect_view();
            if several {
                view! { <optgroup label=workspace>{options}</optgroup> }.into_any()
            } else {
                options.into_any()
            }
        })
        .collect_view()
}
