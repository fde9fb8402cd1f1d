//! One limit in the form: three choices and a text box. The browser keeps what is typed: it is read, and
//! set only when other settings are loaded into the form.

use leptos::html::Input;
use leptos::prelude::*;
use tollkeeper::model::fmt::thousands;
use tollkeeper::model::limit_form::{Choice, Typed};

/// What a limit's field holds, and how it is reached.
#[derive(Clone, Copy)]
pub(super) struct FieldState {
    /// As the page came.
    initial: StoredValue<Typed>,
    typed: RwSignal<Typed>,
    pub(super) fault: RwSignal<Option<String>>,
    choices: [NodeRef<Input>; 3],
    number: NodeRef<Input>,
}

impl FieldState {
    pub(super) fn new(initial: Typed, fault: Option<String>) -> Self {
        Self {
            initial: StoredValue::new(initial.clone()),
            typed: RwSignal::new(initial),
            fault: RwSignal::new(fault),
            choices: std::array::from_fn(|_| NodeRef::new()),
            number: NodeRef::new(),
        }
    }

    pub(super) fn typed(self) -> Typed {
        self.typed.get()
    }

    /// Puts a setting into the field.
    pub(super) fn load(self, typed: Typed) {
        for (node, choice) in self.choices.iter().zip(Choice::ALL) {
            if let Some(radio) = node.get_untracked() {
                radio.set_checked(choice == typed.choice);
            }
        }
        if let Some(number) = self.number.get_untracked() {
            number.set_value(&typed.number);
        }
        self.fault.set(None);
        self.typed.set(typed);
    }

    pub(super) fn focus(self) {
        if let Some(number) = self.number.get_untracked() {
            let _ = number.focus();
        }
    }

    fn choose(self, choice: Choice) {
        self.fault.set(None);
        self.typed.update(|typed| typed.choice = choice);
    }

    /// A number is typed to override.
    fn type_number(self, number: String) {
        self.fault.set(None);
        self.typed.set(Typed { choice: Choice::Override, number });
        if let Some(radio) = self.choices[1].get_untracked() {
            radio.set_checked(true);
        }
    }

    /// What was chosen and typed before the page took over counts.
    fn read_once_here(self) {
        Effect::new(move || {
            let chosen = self.choices.iter().zip(Choice::ALL);
            let chosen = chosen.filter(|(node, _)| node.get_untracked().is_some_and(|radio| radio.checked()));
            let choice = chosen.map(|(_, choice)| choice).next();
            if let (Some(choice), Some(number)) = (choice, self.number.get_untracked()) {
                self.typed.set(Typed { choice, number: number.value() });
            }
        });
    }
}

#[component]
pub(super) fn LimitField(
    /// Of the radio buttons; the text box is `{name}_number`.
    name: &'static str,
    legend: &'static str,
    hint: &'static str,
    /// Of the text box.
    label: &'static str,
    /// What inheriting means; 0 is no limit.
    default: u64,
    /// What disabling means.
    warning: &'static str,
    state: FieldState,
) -> impl IntoView {
    let initial = state.initial.get_value();
    state.read_once_here();
    let choices = Choice::ALL.into_iter().zip(state.choices).map(|(choice, node)| {
        let text = match (choice, default) {
            (Choice::Inherit, 0) => "Inherit no limit".to_owned(),
            (Choice::Inherit, default) => format!("Inherit {}", thousands(default)),
            (Choice::Override, _) => "Override".to_owned(),
            (Choice::Disabled, _) => "Disabled".to_owned(),
        };
        view! {
            <label>
                <input
                    type="radio"
                    name=name
                    value=choice.value()
                    checked=choice == initial.choice
                    node_ref=node
                    on:change=move |_| state.choose(choice)
                />
                {text}
            </label>
        }
    });
    let choices = choices.collect_view();
    let number = format!("{name}_number");
    let fault = format!("{name}_fault");
    view! {
        <fieldset class="limit">
            <legend>{legend}</legend>
            <p class="hint">{hint}</p>
            <div class="choices">{choices}</div>
            <div class="field">
                <label for=number.clone()>{label}</label>
                <input
                    id=number.clone()
                    name=number
                    type="text"
                    inputmode="numeric"
                    autocomplete="off"
                    maxlength=tollkeeper::model::limit_form::NUMBER_MAX.to_string()
                    value=initial.number
                    aria-invalid=move || state.fault.read().is_some().to_string()
                    aria-describedby=fault.clone()
                    node_ref=state.number
                    on:input=move |event| state.type_number(event_target_value(&event))
                />
                <p class="error" id=fault>
                    {move || state.fault.get().map(|fault| format!("{label}: {fault}."))}
                </p>
            </div>
            <p class="notice warn when-disabled">{warning}</p>
        </fieldset>
    }
    .into_any()
}
