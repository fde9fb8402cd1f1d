use leptos::prelude::*;

use crate::components::{Brand, ThemeSwitch};

/// A page outside the application's frame: one card in the middle.
#[component]
pub(crate) fn Gate(title: &'static str, children: Children) -> impl IntoView {
    view! {
        <div class="gate">
            <header>
                <Brand />
                <ThemeSwitch />
            </header>
            <main class="card">
                <h1>{title}</h1>
                {children()}
            </main>
        </div>
    }
}
