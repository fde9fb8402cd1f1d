//! Settings → Keys.

use leptos::prelude::*;

use crate::components::{Guard, Need, PageHead};

#[component]
pub(crate) fn KeysPage() -> impl IntoView {
    view! {
        <Guard need=Need::Models>
            <PageHead title="Keys" />
        </Guard>
    }
}
