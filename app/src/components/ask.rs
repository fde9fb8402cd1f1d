use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

/// A question before something is done. Without script it stands on the page, with script before it; Escape
/// leads to `back`, as its "Keep it" has to.
#[component]
pub(crate) fn AskFirst(#[prop(into)] title: String, back: &'static str, children: Children) -> impl IntoView {
    let dialog = NodeRef::<Dialog>::new();
    Effect::new(move || {
        if let Some(dialog) = dialog.get() {
            // It came open but not modal, as it has to be without script.
            dialog.close();
            let _ = dialog.show_modal();
        }
    });
    let navigate = use_navigate();
    // Escape.
    let cancelled = move |_: web_sys::Event| {
        navigate(back, NavigateOptions { replace: true, scroll: false, ..Default::default() });
    };
    view! {
        <dialog class="card ask-first" open aria-labelledby="ask-title" node_ref=dialog on:cancel=cancelled>
            <h2 id="ask-title">{title}</h2>
            {children()}
        </dialog>
    }
    .into_any()
}
