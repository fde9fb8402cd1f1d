//! Settings → Workspaces.

use leptos::prelude::*;

use crate::components::{Guard, Need, PageHead};

#[component]
pub(crate) fn WorkspacesPage() -> impl IntoView {
    view! {
        <Guard need=Need::Settings>
            <PageHead title="Workspaces" />
        </Guard>
    }
}
