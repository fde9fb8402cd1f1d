use leptos::prelude::*;

/// A text box with its label above. Its id is its name: a page has one field of a name.
#[component]
pub(crate) fn Field(
    label: &'static str,
    name: &'static str,
    /// The input's `type`.
    #[prop(default = "text")]
    kind: &'static str,
    #[prop(default = "off")] autocomplete: &'static str,
    /// What is accepted.
    #[prop(optional)]
    hint: Option<&'static str>,
) -> impl IntoView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input
                id=name
                name=name
                type=kind
                autocomplete=autocomplete
                aria-describedby=hint.map(|_| format!("{name}-hint"))
                required
            />
            {hint
                .map(|hint| {
                    view! {
                        <p class="hint" id=format!("{name}-hint")>
                            {hint}
                        </p>
                    }
                })}
        </div>
    }
}
