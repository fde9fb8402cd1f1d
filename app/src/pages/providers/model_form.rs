//! The settings of a model, and while they are edited what they were and will be.

use leptos::prelude::*;
use tollkeeper::model::fmt::{parse_thousands, thousands};
use tollkeeper::model::providers::ModelSettings;
use tollkeeper::model::reports::Change;

use crate::components::{Changes, Field};

/// Labels and names of the number fields.
const NUMBERS: [(&str, &str); 5] = [
    ("Requests per minute", "rpm"),
    ("Requests per day", "rpd"),
    ("Tokens per minute", "tpm"),
    ("Tokens per day", "tpd"),
    ("Priority", "priority"),
];

#[component]
pub(super) fn ModelForm(
    /// None for a new model.
    model: Option<ModelSettings>,
) -> impl IntoView {
    let is_new = model.is_none();
    let before = before(model.as_ref());
    let typed = RwSignal::new(before.clone());
    let [alias, numbers @ ..] = before.clone();
    let numbers = NUMBERS
        .into_iter()
        .zip(numbers)
        .enumerate()
        .map(|(at, ((label, name), value))| {
            view! { <Text label name value at=at + 1 typed numeric=true /> }
        })
        .collect_view();
    let changes = move || {
        let changes = differences(&before, &typed.read());
        (!is_new).then(|| {
            if changes.is_empty() {
                view! { <p class="dim">"Nothing to save yet."</p> }.into_any()
            } else {
                view! { <Changes changes /> }.into_any()
            }
        })
    };
    view! {
        <div class="form model-form">
            {is_new
                .then(|| view! { <Field label="Model id" name="model" hint="As the provider names it." /> })}
            <Text label="Alias" name="alias" value=alias at=0 typed numeric=false />
            <p class="hint">"What callers ask for; several models may share one. Empty: the model’s own id."</p>
            <div class="numbers">{numbers}</div>
            <p class="hint">"An empty limit is unlimited. The lowest priority is tried first."</p>
            <div class="difference needs-script" class:hidden=is_new aria-live="polite">
                {changes}
            </div>
        </div>
    }
    .into_any()
}

#[component]
fn Text(
    label: &'static str,
    name: &'static str,
    value: String,
    /// Its place among what is typed.
    at: usize,
    typed: RwSignal<[String; 6]>,
    numeric: bool,
) -> impl IntoView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input
                id=name
                name=name
                type="text"
                inputmode=numeric.then_some("numeric")
                autocomplete="off"
                value=value
                on:input=move |event| typed.update(|typed| typed[at] = event_target_value(&event))
            />
        </div>
    }
    .into_any()
}

fn before(model: Option<&ModelSettings>) -> [String; 6] {
    let Some(model) = model else {
        return ["", "", "", "", "", "1"].map(str::to_owned);
    };
    let [rpm, rpd, tpm, tpd] = model.limits().map(|limit| limit.map(thousands).unwrap_or_default());
    [model.alias.clone(), rpm, rpd, tpm, tpd, model.priority.to_string()]
}

fn differences(before: &[String; 6], typed: &[String; 6]) -> Vec<Change> {
    let labels = std::iter::once("Alias").chain(NUMBERS.map(|(label, _)| label));
    labels
        .zip(before.iter().zip(typed))
        .map(|(label, (before, after))| {
            let [before, after] = [before, after].map(|text| shown(label, text));
            Change { field: label.to_owned(), before, after }
        })
        .filter(|change| change.before != change.after)
        .collect()
}

/// As it will be understood.
fn shown(label: &str, text: &str) -> String {
    let text = text.trim();
    match (label, parse_thousands(text)) {
        ("Alias", _) if text.is_empty() => "the model’s own id".to_owned(),
        ("Alias", _) => text.to_owned(),
        ("Priority", _) if text.is_empty() => "1".to_owned(),
        (_, _) if text.is_empty() => "unlimited".to_owned(),
        (_, Some(number)) => thousands(number),
        (_, None) => format!("{text} (no number)"),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn before_and_after_name_what_is_different_as_it_is_understood() {
        let settings = ModelSettings {
            alias: "small".into(),
            rpm: Some(20),
            rpd: None,
            tpm: Some(40_000),
            tpd: None,
            priority: 1,
        };
        let before = before(Some(&settings));
        let mut typed = before.clone();
        typed[3] = "40000".into();
        assert_eq!(differences(&before, &typed), [], "the same number");
        typed[1] = String::new();
        let change =
            Change { field: "Requests per minute".into(), before: "20".into(), after: "unlimited".into() };
        assert_eq!(differences(&before, &typed), [change]);
    }
}
