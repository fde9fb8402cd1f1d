//! The keys there are.

use leptos::prelude::*;
use tollkeeper::model::{KeyRow, Timestamp};

use crate::backend::keys::Keys;
use crate::components::{Moment, Pager};

#[component]
pub(super) fn KeysTable(keys: Keys) -> impl IntoView {
    let Keys { now, rows, page, has_more, of_all, .. } = keys;
    if rows.is_empty() && page == 1 {
        return view! {
            <section class="card empty">
                <h2>"No keys yet"</h2>
                <p class="dim">"Make one below, and hand it to the program that is to call models."</p>
            </section>
        }
        .into_any();
    }
    let rows = rows.into_iter().map(|row| view! { <Row row now of_all /> }).collect_view();
    view! {
        <section class="card flush keys" aria-label="API keys">
            <table class="table">
                <caption class="visually-hidden">"API keys, newest first"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Key"</th>
                        {of_all.then(|| view! { <th scope="col">"Owner"</th> })}
                        <th scope="col">"Workspace"</th>
                        <th scope="col">"Created"</th>
                        <th scope="col">"Last used"</th>
                        <th scope="col">"Expires"</th>
                        <th scope="col">"State"</th>
                        <th scope="col">
                            <span class="visually-hidden">"Actions"</span>
                        </th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
            {(page > 1 || has_more).then(|| view! {
                <Pager
                    shown=format!("Page {page}")
                    previous=(page > 1).then(|| address(page - 1))
                    next=has_more.then(|| address(page + 1))
                />
            })}
        </section>
    }
    .into_any()
}

fn address(page: u32) -> String {
    format!("/settings/keys?page={page}")
}

#[component]
fn Row(row: KeyRow, now: Timestamp, of_all: bool) -> impl IntoView {
    let state = State::of(&row, now);
    let never = || view! { <span class="dim">"never"</span> };
    let last_used =
        row.last_used_at.map_or_else(|| never().into_any(), |at| view! { <Moment at /> }.into_any());
    let expires = row.expires_at.map_or_else(|| never().into_any(), |at| view! { <Moment at /> }.into_any());
    let revoke = (state != State::Revoked).then(|| {
        view! {
            <a class="button danger" href=format!("?revoke={}", row.id) aria-label=format!("Revoke {}", row.name)>
                "Revoke"
            </a>
        }
    });
    view! {
        <tr class:spent=state != State::Active>
            <th scope="row">
                {row.name} <br />
                <code class="dim">{row.hint} "…"</code>
            </th>
            {of_all.then(|| view! { <td data-label="Owner">{row.email}</td> })}
            <td data-label="Workspace">{row.workspace.to_string()}</td>
            <td data-label="Created"><Moment at=row.created_at /></td>
            <td data-label="Last used">{last_used}</td>
            <td data-label="Expires">{expires}</td>
            <td data-label="State">
                <span class=state.class()>{state.word()}</span>
            </td>
            <td class="number">{revoke}</td>
        </tr>
    }
    .into_any()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Expired,
    Revoked,
}

impl State {
    fn of(row: &KeyRow, now: Timestamp) -> Self {
        if row.revoked_at.is_some() {
            State::Revoked
        } else if row.expires_at.is_some_and(|at| at <= now) {
            State::Expired
        } else {
            State::Active
        }
    }

    fn word(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Expired => "expired",
            State::Revoked => "revoked",
        }
    }

    fn class(self) -> &'static str {
        match self {
            State::Active => "chip set",
            State::Expired => "chip warn",
            State::Revoked => "chip",
        }
    }
}
