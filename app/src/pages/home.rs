//! The start page: leads everyone to where they work. Viewers may open none of the pages there are.

use leptos::prelude::*;

use crate::account::me;
use crate::components::{Guard, Lead, Need, PageHead};

#[component]
pub(crate) fn HomePage() -> impl IntoView {
    view! {
        <Guard need=Need::SignIn>
            {match me() {
                Some(me) if me.sees_workspaces() => view! { <Lead to="/settings/workspaces" /> }.into_any(),
                Some(me) if me.calls_models() => view! { <Lead to="/playground" /> }.into_any(),
                _ => view! { <Welcome /> }.into_any(),
            }}
        </Guard>
    }
}

#[component]
fn Welcome() -> impl IntoView {
    let memberships = me().map(|me| me.memberships).unwrap_or_default();
    let lines = memberships
        .into_iter()
        .map(|membership| {
            view! {
                <li>
                    <strong>{membership.workspace.to_string()}</strong>
                    {format!(": {}", membership.role)}
                </li>
            }
        })
        .collect::<Vec<_>>();
    view! {
        <PageHead title="Welcome" />
        <section class="card stack">
            {if lines.is_empty() {
                view! { <p>"You are not a member of any workspace yet. Ask a platform admin to add you."</p> }.into_any()
            } else {
                view! {
                    <p>"You are a member of:"</p>
                    <ul class="plain">{lines}</ul>
                    <p>
                        "Viewers may see the sources and dashboards of their workspaces. To call models, ask a platform "
                        "admin for the role editor."
                    </p>
                }
                    .into_any()
            }}
        </section>
    }
}
