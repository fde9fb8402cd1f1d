//! A workspace: its usage, its limits.

use leptos::prelude::*;

use crate::components::{Guard, Need, PageHead};

#[component]
pub(crate) fn WorkspacePage() -> impl IntoView {
    view! {
        <Guard need=Need::Settings>
            <PageHead title="Workspace" />
        </Guard>
    }
}
