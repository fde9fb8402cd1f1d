//! The playground.

use leptos::prelude::*;

use crate::components::{Guard, Need, PageHead};

#[component]
pub(crate) fn PlaygroundPage() -> impl IntoView {
    view! {
        <Guard need=Need::Models>
            <PageHead title="Playground" />
        </Guard>
    }
}
