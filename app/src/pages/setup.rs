//! The first platform admin, made by whoever holds the link that the server printed.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;
use server_fn::ServerFn;
use tollkeeper::model::Error;

use crate::backend::account::{SetUp, may_set_up};
use crate::components::{Button, Fault, Field, FormAlert, Gate};

#[component]
pub(crate) fn SetupPage() -> impl IntoView {
    let token = use_query_map().read_untracked().get("token").unwrap_or_default();
    let allowed = Resource::new_blocking(
        {
            let token = token.clone();
            move || token.clone()
        },
        may_set_up,
    );
    view! {
        <Title text="Set up" />
        <Suspense>
            {move || {
                let token = token.clone();
                Suspend::new(async move {
                    match allowed.await {
                        Ok(true) => view! { <SetupForm token /> }.into_any(),
                        Ok(false) => view! { <Spent /> }.into_any(),
                        Err(error) => view! { <Fault error=error.0 /> }.into_any(),
                    }
                })
            }}
        </Suspense>
    }
}

#[component]
fn SetupForm(token: String) -> impl IntoView {
    view! {
        <Gate title="Make the first admin">
            <p>"This account may see and change everything. Other users come from the directory file."</p>
            <FormAlert function=SetUp::PATH />
            <form class="form" method="post" action=SetUp::PATH>
                <input type="hidden" name="token" value=token />
                <Field label="Email" name="email" kind="email" autocomplete="username" />
                <Field label="Password" name="password" kind="password" autocomplete="new-password" hint="At least 12 characters." />
                <Button primary=true>"Make the account"</Button>
            </form>
        </Gate>
    }
}

#[component]
fn Spent() -> impl IntoView {
    let error = Error::Forbidden(
        "this set-up link is not valid, or was used; sign in, or take the link that the server printed when it last started"
            .into(),
    );
    view! {
        <Gate>
            <Fault error />
        </Gate>
    }
}
