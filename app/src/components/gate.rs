use leptos::prelude::*;

use crate::components::{Brand, ThemeSwitch};

/// A page outside the application's frame: one card in the middle.
#[component]
pub(crate) fn Gate(
    /// None where what is inside has a heading.
    #[prop(optional)]
    title: Option<&'static str>,
    children: Children,
) -> impl IntoView {
    view! {
        <div class="gate">
            <header>
                <Brand />
                <ThemeSwitch />
            </header>
            <main class="card">
                {title.map(|title| view! { <h1>{title}</h1> })}
                {children()}
            </main>
        </div>
    }
}
