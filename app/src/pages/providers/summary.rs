//! How the pool stands, at a glance.

use leptos::prelude::*;
use tollkeeper::model::fmt::{counted, thousands};
use tollkeeper::model::providers::ProvidersPage;

use crate::components::Fact;

#[component]
pub(super) fn Summary(page: RwSignal<ProvidersPage>) -> impl IntoView {
    let readiness = Memo::new(move |_| page.read().readiness());
    // Keys, and those of them that are in use.
    let keys = Memo::new(move |_| {
        let page = page.read();
        let keys = page.platforms.iter().flat_map(|platform| &platform.keys);
        keys.fold((0_u64, 0_u64), |(all, used), key| (all + 1, used + u64::from(key.enabled)))
    });
    view! {
        <Show when=move || { readiness.read().all() > 0 }>
            <dl class="card facts">
                <Fact
                    name="Ready"
                    value=Signal::derive(move || thousands(readiness.read().ready))
                    more=Signal::derive(move || format!("of {}", counted(readiness.read().all(), "candidate", "candidates")))
                />
                <Fact
                    name="Cooling down"
                    value=Signal::derive(move || thousands(readiness.read().cooling))
                    more=Signal::derive(|| "after a failure".to_owned())
                />
                <Fact
                    name="Out of room"
                    value=Signal::derive(move || thousands(readiness.read().full))
                    more=Signal::derive(|| "by a limit below".to_owned())
                />
                <Fact
                    name="Keys in use"
                    value=Signal::derive(move || thousands(keys.get().1))
                    more=Signal::derive(move || format!("of {}", thousands(keys.get().0)))
                />
            </dl>
        </Show>
    }
    .into_any()
}
