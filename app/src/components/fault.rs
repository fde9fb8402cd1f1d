//! An error as a page, and the words of errors.

use leptos::prelude::*;
use leptos_meta::Title;
use tollkeeper::model::Error;

use crate::components::set_status;

/// The error's sentence, as one on a page begins and ends.
pub(crate) fn sentence(error: &Error) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first: String = chars.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// What stands in the place of a page that can't be shown. On the server it sets the answer's status, and
/// leads those who have to sign in there.
#[component]
pub(crate) fn Fault(error: Error) -> impl IntoView {
    #[cfg(feature = "ssr")]
    if error.status() == 401 {
        crate::backend::request::lead_to_login();
    } else {
        set_status(error.status());
    }
    #[cfg(not(feature = "ssr"))]
    set_status(error.status());
    let title = match error.status() {
        401 => "Signed out",
        403 => "Not allowed",
        404 => "Not found",
        500.. => "Out of order",
        _ => "Not possible",
    };
    let (address, link) =
        if error.status() == 401 { ("/login", "Sign in") } else { ("/", "Go to the start page") };
    view! {
        <Title text=title />
        <section class="fault stack">
            <h1>{title}</h1>
            <p>{sentence(&error)}</p>
            <p>
                <a class="button" href=address>
                    {link}
                </a>
            </p>
        </section>
    }
}
