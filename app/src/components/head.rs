use leptos::prelude::*;
use leptos_meta::Title;

/// A page's title, with a line below it, and in the document's title.
#[component]
pub(crate) fn PageHead(
    #[prop(into)] title: String,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    view! {
        <Title text=title.clone() />
        <header class="page-head">
            <h1>{title}</h1>
            {children.map(|children| view! { <div class="lead">{children()}</div> })}
        </header>
    }
    .into_any()
}
