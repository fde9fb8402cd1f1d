//! The limits: a form for those who may change them, what is in force for the others.

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use server_fn::ServerFn;
use tollkeeper::model::Setting;
use tollkeeper::model::fmt::thousands;
use tollkeeper::model::limit::{Edit, Overrides};
use tollkeeper::model::limit_form::{LimitsForm, Typed};
use tollkeeper::model::reports::{Change, LimitRow, WorkspaceDetail};

use super::address::{Saved, saved, stored, typed_form};
use super::limit_field::{FieldState, LimitField};
use crate::backend::workspace::SetLimits;
use crate::components::{Alert, Button, Changes, LimitChip, sentence};

#[component]
pub(super) fn LimitsCard(detail: RwSignal<WorkspaceDetail>, query: ParamsMap) -> impl IntoView {
    let now = Memo::new(move |_| in_force(&detail.read()));
    let (id, default_rate, default_budget) = detail
        .with_untracked(|detail| (detail.row.id.to_string(), detail.default_rate, detail.default_budget));

    let came_back = typed_form(&query);
    let initial = came_back.clone().unwrap_or_else(|| LimitsForm::of(now.get_untracked()));
    let faults = came_back.as_ref().and_then(|form| form.edit().err()).unwrap_or_default();
    let conflict = came_back.and_then(|form| form.edit().ok()?.onto(now.get_untracked()).err());
    let seen = RwSignal::new(initial.seen);
    let rate = FieldState::new(initial.rate, faults.rate);
    let budget = FieldState::new(initial.budget, faults.budget);
    let form = move || LimitsForm { seen: seen.get(), rate: rate.typed(), budget: budget.typed() };
    let load = move |settings: Overrides| {
        seen.set(settings);
        rate.load(Typed::of(settings.rate));
        budget.load(Typed::of(settings.budget));
    };

    let saved = RwSignal::new(saved(&query, &detail.read_untracked().audit));
    let failed = RwSignal::new(conflict.map(tollkeeper::model::Error::Conflict));
    let save = ServerAction::<SetLimits>::new();
    let workspace = id.clone();
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if save.pending().get_untracked() {
            return;
        }
        let form = untrack(form);
        saved.set(None);
        failed.set(None);
        match form.edit() {
            Ok(_) => {
                save.dispatch(request(&workspace, &form));
            }
            Err(faults) => {
                let wrong = if faults.rate.is_some() { rate } else { budget };
                rate.fault.set(faults.rate);
                budget.fault.set(faults.budget);
                wrong.focus();
            }
        }
    };
    Effect::new(move || match save.value().get() {
        None => {}
        Some(Ok(done)) => {
            load(in_force(&done.detail));
            saved.set(Some(done.line.map_or(Saved::Same, Saved::Changed)));
            detail.set(done.detail);
        }
        Some(Err(error)) => failed.set(Some(error.0)),
    });
    // A form that nobody has touched goes along with what others change.
    Effect::new(move || {
        let now = now.get();
        if now != seen.get_untracked() && untrack(form) == LimitsForm::of(seen.get_untracked()) {
            load(now);
        }
    });

    let changes = move || {
        let edit = form().edit().ok()?;
        Some(changes(edit, default_rate, default_budget)).filter(|changes| !changes.is_empty())
    };
    let spent = move || {
        let used = detail.read().row.today.tokens();
        let wanted = form().edit().ok()?.wanted.budget;
        let below = matches!(wanted, Setting::Value(n) if n <= used) && wanted != seen.get().budget;
        below.then(|| {
            format!(
                "{} tokens are used today already: requests will be refused until 00:00 UTC.",
                thousands(used)
            )
        })
    };

    view! {
        <section class="card" aria-labelledby="limits">
            <header>
                <h2 id="limits">"Limits"</h2>
                <small class="dim">"apply to the next request"</small>
            </header>
            <form class="form limits" method="post" action=SetLimits::PATH on:submit=submit>
                <input type="hidden" name="workspace" value=id />
                <input type="hidden" name="rate_seen" value=move || stored(seen.get().rate) />
                <input type="hidden" name="budget_seen" value=move || stored(seen.get().budget) />
                <LimitField
                    name="rate"
                    legend="Rate per user"
                    hint="Model requests that each user may make a minute; a new user may make them at once."
                    label="Requests per minute"
                    default=default_rate
                    warning="Disabled: every user may call models as fast as they like, and one of them can spend the whole day's budget in minutes."
                    state=rate
                />
                <LimitField
                    name="budget"
                    legend="Daily token budget"
                    hint="Input and output tokens a UTC day, over all users and routes."
                    label="Tokens per day"
                    default=default_budget
                    warning="Disabled: nothing bounds what this workspace can spend at the providers in a day."
                    state=budget
                />
                <Meanwhile now seen load />
                <div class="difference needs-script" aria-live="polite">
                    {move || match changes() {
                        None => view! { <p class="dim">"Nothing to save yet."</p> }.into_any(),
                        Some(changes) => view! { <Changes changes /> }.into_any(),
                    }}
                    {move || spent().map(|spent| view! { <p class="caution">{spent}</p> })}
                </div>
                <div class="row">
                    <Button primary=true>"Save change"</Button>
                </div>
                <div role="status">{move || saved.get().map(said)}</div>
                {move || failed.get().map(|error| view! { <Alert>{sentence(&error)}</Alert> })}
            </form>
        </section>
    }
    .into_any()
}

/// What to do when someone else saved while this form was being filled in.
#[component]
fn Meanwhile(
    now: Memo<Overrides>,
    seen: RwSignal<Overrides>,
    load: impl Fn(Overrides) + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let changed = move || (now.get() != seen.get()).then(|| now.get());
    let notice = move |now: Overrides| {
        view! {
            <div class="notice warn">
                <p>
                    "The settings were changed meanwhile: rate per user " <b>{now.rate.to_string()}</b>
                    ", daily token budget " <b>{now.budget.to_string()}</b> "."
                </p>
                <button class="button needs-script" type="button" on:click=move |_| load(now)>
                    "Load them"
                </button>
            </div>
        }
    };
    view! { <div aria-live="polite">{move || changed().map(notice)}</div> }.into_any()
}

/// That the form was saved, and what that changed.
fn said(saved: Saved) -> impl IntoView {
    match saved {
        Saved::Same => view! { <p class="notice">"Saved; nothing was different."</p> }.into_any(),
        Saved::Changed(line) => view! {
            <div class="notice">
                <p>"Saved; the next request obeys it."</p>
                <Changes changes=line.changes />
            </div>
        }
        .into_any(),
    }
}

fn request(workspace: &str, form: &LimitsForm) -> SetLimits {
    SetLimits {
        workspace: workspace.to_owned(),
        rate: form.rate.choice.value().to_owned(),
        rate_number: form.rate.number.clone(),
        rate_seen: stored(form.seen.rate),
        budget: form.budget.choice.value().to_owned(),
        budget_number: form.budget.number.clone(),
        budget_seen: stored(form.seen.budget),
    }
}

fn in_force(detail: &WorkspaceDetail) -> Overrides {
    Overrides { rate: detail.row.rate.setting(), budget: detail.row.budget.setting() }
}

fn changes(edit: Edit, default_rate: u64, default_budget: u64) -> Vec<Change> {
    let words = |setting: Setting, default: u64| match (setting, default) {
        (Setting::Inherit, 0) => "inherit no limit".to_owned(),
        (Setting::Inherit, default) => format!("inherit {}", thousands(default)),
        (own, _) => own.to_string(),
    };
    let of = |field: &str, before: Setting, after: Setting, default| {
        let [before_text, after_text] = [before, after].map(|setting| words(setting, default));
        (before != after).then(|| Change { field: field.to_owned(), before: before_text, after: after_text })
    };
    let rate = of("Rate per user", edit.seen.rate, edit.wanted.rate, default_rate);
    let budget = of("Daily token budget", edit.seen.budget, edit.wanted.budget, default_budget);
    rate.into_iter().chain(budget).collect()
}

/// The limits for those who may only look.
#[component]
pub(super) fn LimitsInForce(detail: RwSignal<WorkspaceDetail>) -> impl IntoView {
    let shown = |limit: LimitRow, unit: &str| {
        let words = match limit.effective {
            0 => "no limit".to_owned(),
            limit => format!("{} {unit}", thousands(limit)),
        };
        view! { <span>{words}</span> " " <LimitChip limit /> }
    };
    view! {
        <section class="card" aria-labelledby="limits">
            <header>
                <h2 id="limits">"Limits"</h2>
                <small class="dim">"changed by platform admins"</small>
            </header>
            <dl class="in-force">
                <dt>"Rate per user"</dt>
                <dd>{move || shown(detail.read().row.rate, "requests a minute")}</dd>
                <dt>"Daily token budget"</dt>
                <dd>{move || shown(detail.read().row.budget, "tokens a day")}</dd>
            </dl>
        </section>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_and_after_name_what_is_touched_alone() {
        let seen = Overrides { rate: Setting::Inherit, budget: Setting::Value(5_000) };
        let wanted = Overrides { rate: Setting::Value(60), ..seen };
        let rate = Change { field: "Rate per user".into(), before: "inherit 20".into(), after: "60".into() };
        assert_eq!(changes(Edit { seen, wanted }, 20, 0), [rate]);
        assert_eq!(changes(Edit { seen, wanted: seen }, 20, 0), []);
        let wanted = Overrides { budget: Setting::Inherit, ..seen };
        assert_eq!(changes(Edit { seen, wanted }, 20, 0)[0].after, "inherit no limit");
    }
}
