use leptos::prelude::*;

use crate::backend::flash::flash_of;

/// Something that went wrong, told at once.
#[component]
pub(crate) fn Alert(children: Children) -> impl IntoView {
    view! {
        <div class="notice over" role="alert">
            {children()}
        </div>
    }
}

/// Why the form that was sent to this server function came back.
#[component]
pub(crate) fn FormAlert(function: &'static str) -> impl IntoView {
    flash_of(function).map(|error| view! { <Alert>{crate::components::sentence(&error)}</Alert> })
}
