//! What answers an address that no page has, with status 404.

use leptos::prelude::*;
use leptos_meta::Title;

use crate::components::{Gate, set_status};

#[component]
pub(crate) fn NotFoundPage() -> impl IntoView {
    set_status(404);
    view! {
        <Title text="Not found" />
        <Gate title="Not found">
            <p>"There is no page at this address."</p>
            <p>
                <a href="/">"Go to the start page"</a>
            </p>
        </Gate>
    }
}
