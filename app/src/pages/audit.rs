//! Settings → Audit.

use leptos::prelude::*;

use crate::components::{Guard, Need, PageHead};

#[component]
pub(crate) fn AuditPage() -> impl IntoView {
    view! {
        <Guard need=Need::Admin>
            <PageHead title="Audit" />
        </Guard>
    }
}
