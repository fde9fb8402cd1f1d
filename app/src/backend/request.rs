//! The request that a server function or a page answers, and how it is answered.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use leptos::prelude::{expect_context, use_context};
use leptos_axum::ResponseOptions;
use leptos_router::location::Url;
use tollkeeper::api::auth::{ClientAddress, SessionOnly};
use tollkeeper::identity::Caller;
use tollkeeper::model::Error;
use tollkeeper::services::Services;
use tower_sessions::Session;

use super::PageError;
use super::flash::Flash;
use crate::local_path::local_path;

/// All server functions are below this.
pub(crate) const FUNCTIONS: &str = "/_fn/";

pub(crate) fn services() -> Services {
    expect_context()
}

/// Who asks, as of now. To be called by every server function that isn't for all.
pub(crate) async fn caller() -> Result<Caller, Error> {
    let mut parts = parts()?;
    SessionOnly::from_request_parts(&mut parts, &services())
        .await
        .map(|signed| signed.0)
        .map_err(|error| error.0)
}

pub(crate) async fn client_address() -> Result<ClientAddress, Error> {
    let mut parts = parts()?;
    match ClientAddress::from_request_parts(&mut parts, &services()).await {
        Ok(address) => Ok(address),
        Err(never) => match never {},
    }
}

pub(crate) fn session() -> Result<Session, Error> {
    parts()?.extensions.get::<Session>().cloned().ok_or(Error::Internal)
}

/// What a function that reads answers. Called by script, an error is its status too; called for a page that
/// is being rendered, the page decides on its own status.
pub(crate) fn read<T>(result: Result<T, Error>) -> Result<T, PageError> {
    if let Err(error) = &result
        && is_call()
    {
        set_error_status(error);
    }
    result.map_err(PageError)
}

/// What signing in answers: unlike elsewhere a 401 is an error of the form's input.
pub(crate) fn signed_in(result: Result<(), Error>, next: &str) -> Result<(), PageError> {
    match result {
        Err(error @ Error::Unauthenticated(_)) if wants_page() => {
            lead_back(&error);
            Err(PageError(error))
        }
        result => changed(result, next),
    }
}

/// What a function that changes something answers: done, it leads to `next`; failed, back to the form. Without
/// the right to what was asked there is no form to go back to, and the answer is a page that says so.
pub(crate) fn changed(result: Result<(), Error>, next: &str) -> Result<(), PageError> {
    match result {
        Ok(()) => {
            lead_to(next);
            Ok(())
        }
        Err(error) => Err(refused(error)),
    }
}

/// The half of [`changed`] that says no.
pub(crate) fn refused(error: Error) -> PageError {
    match error.status() {
        _ if !wants_page() => set_error_status(&error),
        401 => lead_to(&login_path(&form_path())),
        403 | 404 => {}
        _ => lead_back(&error),
    }
    PageError(error)
}

/// A 303, or what makes script go there.
pub(crate) fn lead_to(path: &str) {
    let Some(response) = use_context::<ResponseOptions>() else {
        return;
    };
    let path = local_path(path).and_then(|path| HeaderValue::from_str(path).ok());
    response.insert_header(header::LOCATION, path.unwrap_or(HeaderValue::from_static("/")));
    if is_call() && !wants_page() {
        response.insert_header(HeaderName::from_static("serverfnredirect"), HeaderValue::from_static(""));
    } else {
        response.set_status(StatusCode::SEE_OTHER);
    }
}

/// Leads a stranger to the sign-in, and from there back to this page.
pub(crate) fn lead_to_login() {
    let here = use_context::<Parts>().and_then(|parts| Some(parts.uri.path_and_query()?.to_string()));
    lead_to(&login_path(here.as_deref().unwrap_or("/")));
}

/// Whether a plain form (or a person) asks, to whom the answer has to be a page.
pub(crate) fn takes_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

fn login_path(next: &str) -> String {
    if next == "/" { "/login".to_owned() } else { format!("/login?next={}", Url::escape(next)) }
}

fn lead_back(error: &Error) {
    let (Ok(parts), Some(response)) = (parts(), use_context::<ResponseOptions>()) else {
        return;
    };
    if let Some(cookie) = Flash::new(parts.uri.path(), error.clone()).cookie() {
        response.append_header(header::SET_COOKIE, cookie);
    }
    lead_to(&form_path());
}

/// The page that the form was on, by `Referer`.
pub(crate) fn form_path() -> String {
    let path = use_context::<Parts>().and_then(|parts| {
        let referer = parts.headers.get(header::REFERER)?.to_str().ok()?.parse::<axum::http::Uri>().ok()?;
        local_path(referer.path_and_query()?.as_str()).map(str::to_owned)
    });
    path.unwrap_or_else(|| "/".to_owned())
}

fn set_error_status(error: &Error) {
    let (Some(response), Ok(status)) =
        (use_context::<ResponseOptions>(), StatusCode::from_u16(error.status()))
    else {
        return;
    };
    response.set_status(status);
    if let Some(seconds) = error.retry_after_s() {
        response.insert_header(header::RETRY_AFTER, seconds.into());
    }
}

fn parts() -> Result<Parts, Error> {
    use_context::<Parts>().ok_or(Error::Internal)
}

/// Whether the function was called over HTTP, not by the rendering of a page.
fn is_call() -> bool {
    use_context::<Parts>().is_some_and(|parts| parts.uri.path().starts_with(FUNCTIONS))
}

/// Whether what is answered has to be a page, or lead to one.
pub(crate) fn wants_page() -> bool {
    use_context::<Parts>().is_some_and(|parts| takes_html(&parts.headers))
}
