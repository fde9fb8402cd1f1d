//! What was asked and answered, oldest first.

use leptos::prelude::*;
use tollkeeper::model::Usage;
use tollkeeper::model::fmt::{counted, thousands};

use super::state::{State, Target};
use super::turn::{Outcome, Turn};
use crate::components::{Alert, SpecCards};

/// The model that is built in, for trying things out.
const DEMO_MODEL: &str = "demo-1";

#[component]
pub(super) fn Log(state: State) -> impl IntoView {
    view! {
        <div class="log" role="log" aria-label="Conversation" aria-relevant="additions">
            <For each=move || state.turns.get() key=|turn| turn.id let:turn>
                <TurnView state turn />
            </For>
        </div>
    }
    .into_any()
}

#[component]
fn TurnView(state: State, turn: Turn) -> impl IntoView {
    let reply = turn.reply;
    let about = state.choice.with_value(|choice| match &turn.target {
        Target::Source(id) => choice.sources.iter().find(|row| row.id == *id).map(|row| row.name.clone()),
        Target::Dashboard(id) => {
            choice.dashboards.iter().find(|row| row.id == *id).map(|row| row.name.clone())
        }
    });
    let running = Memo::new(move |_| reply.with(|reply| reply.outcome == Outcome::Running));
    let tools = Memo::new(move |_| reply.with(|reply| reply.tools.clone()));
    let spoke = Memo::new(move |_| reply.with(|reply| !reply.text.is_empty()));
    let text = move || reply.with(|reply| reply.text.clone());
    let spec = Memo::new(move |_| reply.with(|reply| (reply.spec.clone(), reply.figures.clone())));
    let blank = Memo::new(move |_| reply.with(|reply| reply.is_blank() && reply.outcome == Outcome::Running));
    view! {
        // Read out when it is complete, not piece by piece.
        <article class="turn" aria-busy=move || running.get().then_some("true")>
            <div class="asked">
                <h3 class="visually-hidden">"You"</h3>
                <p class="said">{turn.prompt}</p>
                <p class="dim small">"to " {about}</p>
            </div>
            <div class="answered">
                <h3 class="visually-hidden">"Model"</h3>
                {move || blank.get().then(|| view! { <p class="thinking"><span></span>"Waiting for the model"</p> })}
                <Show when=move || !tools.with(Vec::is_empty)>
                    <ul class="steps" aria-label="What the model did">
                        {move || tools.get().into_iter().map(|tool| view! { <li>{tool_words(&tool)}</li> }).collect_view()}
                    </ul>
                </Show>
                <Show when=move || spoke.get()>
                    <p class="said">{text}</p>
                </Show>
                {move || {
                    let (spec, figures) = spec.get();
                    spec.map(|spec| view! { <SpecCards spec figures /> })
                }}
                {move || outcome_view(reply.with(|reply| reply.outcome.clone()))}
            </div>
        </article>
    }
    .into_any()
}

fn outcome_view(outcome: Outcome) -> impl IntoView {
    match outcome {
        Outcome::Running => ().into_any(),
        Outcome::Done { model, usage, steps } => view! { <UsageLine model usage steps /> }.into_any(),
        Outcome::Stopped => {
            view! { <p class="dim small">"You stopped the answer here. It is charged as far as it came."</p> }
                .into_any()
        }
        Outcome::Failed(sentence) => view! { <Alert>{sentence}</Alert> }.into_any(),
    }
}

#[component]
fn UsageLine(model: String, usage: Usage, steps: Option<u32>) -> impl IntoView {
    let demo = model == DEMO_MODEL;
    let steps =
        steps.filter(|steps| *steps > 1).map(|steps| counted(steps.into(), "model call", "model calls"));
    view! {
        <dl class="usage">
            <div>
                <dt>"Input"</dt>
                <dd>{thousands(usage.input_tokens)} " tokens"</dd>
            </div>
            <div>
                <dt>"Output"</dt>
                <dd>{thousands(usage.output_tokens)} " tokens"</dd>
            </div>
            <div>
                <dt>"Model"</dt>
                <dd>
                    {model} {demo.then(|| view! { " "<span class="chip">"demo model"</span> })}
                </dd>
            </div>
            {steps.map(|steps| view! { <div><dt>"Steps"</dt><dd>{steps}</dd></div> })}
        </dl>
    }
}

/// What a tool did, in words.
fn tool_words(name: &str) -> String {
    match name {
        "read_source" => "Read the source".into(),
        "read_dashboard" => "Read the dashboard".into(),
        "update_dashboard" => "Changed the dashboard".into(),
        other => format!("Used the tool {other}"),
    }
}
