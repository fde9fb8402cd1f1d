//! The start page: leads everyone to where they work. Viewers may open none of the pages there are.

use leptos::prelude::*;
use tollkeeper::model::WorkspaceId;

use crate::account::{known, me};
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
    let account = known().ok().flatten();
    let (memberships, names) =
        account.map(|account| (account.me.memberships, account.workspaces)).unwrap_or_default();
    let name_of = |id: &WorkspaceId| {
        names.iter().find(|(named, _)| named == id).map_or_else(|| id.to_string(), |(_, name)| name.clone())
    };
    let lines = memberships
        .into_iter()
        .map(|membership| {
            view! {
                <li>
                    <strong>{name_of(&membership.workspace)}</strong>
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
