//! Signing in.

use leptos::prelude::*;
use leptos_meta::Title;

use crate::components::{Button, Field, Gate};

#[component]
pub(crate) fn LoginPage() -> impl IntoView {
    view! {
        <Title text="Sign in" />
        <Gate title="Sign in">
            <form class="form" method="post">
                <Field label="Email" name="email" kind="email" autocomplete="username" />
                <Field label="Password" name="password" kind="password" autocomplete="current-password" />
                <Button primary=true>"Sign in"</Button>
            </form>
        </Gate>
    }
}
