//! The pages. Rendered by the server, which is complete without script, then taken over in the browser.
//!
//! - `account`: who looks at the page
//! - `backend`: what pages ask of the service, as server functions
//! - `browser`: what pages do in the browser beyond views
//! - `components`: the kit of small parts that pages are made of
//! - `pages`: one file a page
//! - `document`, `assets`, `server`: the server's side, the HTML document, the files beside it, the routes

#![expect(clippy::needless_pass_by_value, reason = "components own their properties")]

mod account;
mod app;
#[cfg(feature = "ssr")]
mod assets;
mod backend;
mod browser;
mod components;
#[cfg(feature = "ssr")]
mod document;
mod local_path;
mod pages;
#[cfg(feature = "ssr")]
pub mod server;

pub use app::App;

/// Takes over the page in the browser.
#[cfg(feature = "hydrate")]
pub fn hydrate() {
    leptos::mount::hydrate_body(App);
}
