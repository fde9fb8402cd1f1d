//! The frame of the pages of those who signed in: navigation at the side (above, on a phone), the account at its end.

use leptos::ev;
use leptos::html::Details;
use leptos::prelude::*;
use leptos_router::components::{A, Outlet};
use server_fn::ServerFn;
use tollkeeper::model::{Me, Mode, WorkspaceId};
use wasm_bindgen::JsCast;

use crate::account::{Account, known};
use crate::backend::account::{SelectWorkspace, SignOut};
use crate::components::{Brand, Button, ThemeSwitch};

#[component]
pub(crate) fn Frame() -> impl IntoView {
    let account = known().ok().flatten();
    let mode = account.as_ref().and_then(|account| account.mode);
    view! {
        <div class="frame">
            <a class="skip" href="#content">
                "Skip to the page"
            </a>
            <header class="side">
                <Brand />
                {account.clone().map(|account| view! { <Navigation me=account.me /> }.into_any())}
                {account.map(|account| view! { <AccountMenu account /> }.into_any())}
            </header>
            <main id="content" tabindex="-1">
                <Outlet />
            </main>
            {mode.map(|mode| view! { <ModeLine mode /> }.into_any())}
        </div>
    }
}

/// Links to the pages that this person may see.
#[component]
fn Navigation(me: Me) -> impl IntoView {
    let link = |shown: bool, href: &'static str, text: &'static str| {
        shown.then(|| {
            view! {
                <li>
                    <A href>{text}</A>
                </li>
            }
            .into_any()
        })
    };
    view! {
        <nav aria-label="Main">
            <ul>{link(me.calls_models(), "/playground", "Playground")}</ul>
            {(me.sees_workspaces() || me.calls_models())
                .then(|| {
                    view! {
                        <h2 class="group" id="settings">
                            "Settings"
                        </h2>
                        <ul aria-labelledby="settings">
                            {link(me.sees_workspaces(), "/settings/workspaces", "Workspaces")}
                            {link(me.admin, "/settings/providers", "Providers")}
                            {link(me.calls_models(), "/settings/keys", "Keys")}
                            {link(me.admin, "/settings/audit", "Audit")}
                        </ul>
                    }
                        .into_any()
                })}
        </nav>
    }
    .into_any()
}

/// Where the limits are kept, as things stood when the page was rendered.
#[component]
fn ModeLine(mode: Mode) -> impl IntoView {
    let mut sentence = mode.sentence();
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    view! {
        <footer class="mode" class:warn=mode.is_bad()>
            {sentence}
        </footer>
    }
    .into_any()
}

#[component]
fn AccountMenu(account: Account) -> impl IntoView {
    let Account { me, workspaces, .. } = account;
    let initial: String = me.email.chars().next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let role = if me.admin { "Platform admin".to_owned() } else { roles(&me) };
    let menu = NodeRef::<Details>::new();
    close_when_left(menu);
    view! {
        <details class="account" node_ref=menu>
            <summary>
                <span class="initial" aria-hidden="true">
                    {initial}
                </span>
                <span class="email">
                    <span class="visually-hidden">"Account "</span>
                    {me.email.clone()}
                </span>
            </summary>
            <div class="account-menu card">
                <p class="dim">{role}</p>
                <WorkspaceChoice selected=me.selected_workspace workspaces />
                <ThemeSwitch />
                <form method="post" action=SignOut::PATH>
                    <Button>"Sign out"</Button>
                </form>
            </div>
        </details>
    }
    .into_any()
}

/// Closes the menu on Escape, and on whatever is done elsewhere.
fn close_when_left(menu: NodeRef<Details>) {
    Effect::new(move || {
        let click = window_event_listener(ev::click, move |event| {
            let target = event.target().and_then(|target| target.dyn_into::<web_sys::Node>().ok());
            if let Some(menu) = menu.get_untracked()
                && !menu.contains(target.as_ref())
            {
                menu.set_open(false);
            }
        });
        let key = window_event_listener(ev::keydown, move |event| {
            if let Some(menu) = menu.get_untracked()
                && menu.open()
                && event.key() == "Escape"
            {
                menu.set_open(false);
                let summary = menu.query_selector("summary").ok().flatten();
                if let Some(summary) =
                    summary.and_then(|summary| summary.dyn_into::<web_sys::HtmlElement>().ok())
                {
                    let _ = summary.focus();
                }
            }
        });
        on_cleanup(move || {
            click.remove();
            key.remove();
        });
    });
}

/// In which workspace things are made that have none of their own, such as a source's draft.
#[component]
fn WorkspaceChoice(selected: Option<WorkspaceId>, workspaces: Vec<(WorkspaceId, String)>) -> impl IntoView {
    if workspaces.len() < 2 {
        let only = workspaces.into_iter().next();
        return only.map(|(_, name)| view! { <p>"Workspace: " {name}</p> }).into_any();
    }
    let options = workspaces
        .into_iter()
        .map(|(id, name)| {
            view! {
                <option value=id.to_string() selected=selected.as_ref() == Some(&id)>
                    {name}
                </option>
            }
        })
        .collect_view();
    view! {
        <form class="workspace-choice" method="post" action=SelectWorkspace::PATH>
            <label for="workspace">"Workspace"</label>
            <select id="workspace" name="workspace">
                {options}
            </select>
            <Button>"Switch"</Button>
        </form>
    }
    .into_any()
}

/// `editor` where the roles are all the same, else each once.
fn roles(me: &Me) -> String {
    let mut roles: Vec<&str> = me.memberships.iter().map(|membership| membership.role.as_str()).collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "No workspace".to_owned() } else { roles.join(", ") }
}
