//! Forms that are answered by the page they stand on, at its own address.
//!
//! A form sent without script usually leads to another address. That doesn't do where the answer is gone
//! with the request, and must be in no address, cookie or table: a new API key, the words of a model.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use leptos::prelude::provide_context;
use tollkeeper::api::auth::SessionOnly;
use tollkeeper::api::respond::ApiError;
use tollkeeper::identity::Caller;
use tollkeeper::model::Error;
use tollkeeper::services::Services;

use crate::document::shell;

/// As on `/api`.
const BODY_MAX: usize = 1024 * 1024;

/// What the page's loading finds in its context, when the page answers a form.
#[derive(Clone)]
pub(crate) struct AtOwnAddress<T>(pub(crate) T);

/// The fields of a form; of several with one name the last.
pub(crate) struct Form(HashMap<String, String>);

impl Form {
    /// Empty where there is no such field.
    pub(crate) fn text(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn of(body: &[u8]) -> Self {
        let fields = form_urlencoded::parse(body);
        Form(fields.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }
}

/// Does the form's work and renders the page with what came of it. Whoever isn't signed in has done nothing,
/// and is led to the sign-in by the page.
pub(crate) async fn answer<T, F>(
    services: Services,
    context: impl Fn() + Clone + Send + Sync + 'static,
    request: Request,
    work: impl FnOnce(Services, Caller, Form) -> F,
) -> Response
where
    T: Clone + Send + Sync + 'static,
    F: Future<Output = T>,
{
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_MAX).await else {
        let error = Error::TooLarge("the form is larger than 1 MiB; send less".into());
        return ApiError(error).into_response();
    };
    let answered = match SessionOnly::from_request_parts(&mut parts, &services).await {
        Ok(SessionOnly(caller)) => Some(Arc::new(work(services, caller, Form::of(&body)).await)),
        Err(ApiError(error)) if error.status() == StatusCode::UNAUTHORIZED.as_u16() => None,
        Err(error) => return error.into_response(),
    };
    let context = move || {
        context();
        if let Some(answered) = &answered {
            provide_context(AtOwnAddress(T::clone(answered)));
        }
    };
    let page = leptos_axum::render_app_async_with_context(context, shell);
    page(Request::from_parts(parts, Body::empty())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_missing_ones_are_empty() {
        let form = Form::of(b"prompt=a+b%26c&source=&prompt=last");
        assert_eq!(
            (form.text("prompt"), form.text("source"), form.text("gone")),
            ("last".into(), String::new(), String::new())
        );
    }
}
