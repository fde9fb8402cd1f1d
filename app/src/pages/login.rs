//! Signing in.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;
use server_fn::ServerFn;

use crate::backend::account::SignIn;
use crate::components::{Button, Field, FormAlert, Gate};
use crate::local_path::local_path;

/// `?next=` is the page to go to afterwards.
#[component]
pub(crate) fn LoginPage() -> impl IntoView {
    let query = use_query_map();
    let next = query.read_untracked().get("next").filter(|next| local_path(next).is_some());
    view! {
        <Title text="Sign in" />
        <Gate title="Sign in">
            <FormAlert function=SignIn::PATH />
            <form class="form" method="post" action=SignIn::PATH>
                <input type="hidden" name="next" value=next.unwrap_or_else(|| "/".to_owned()) />
                <Field label="Email" name="email" kind="email" autocomplete="username" />
                <Field label="Password" name="password" kind="password" autocomplete="current-password" />
                <Button primary=true>"Sign in"</Button>
            </form>
        </Gate>
    }
}
