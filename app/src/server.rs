//! The pages as an axum router, to be merged with the API's.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use leptos::config::LeptosOptions;
use leptos::nonce::use_nonce;
use leptos::prelude::{provide_context, use_context};
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list};
use server_fn::error::FromServerFnError as _;
use tollkeeper::identity::Caller;
use tollkeeper::services::Services;

use crate::app::{App, Failed};
use crate::backend::posted::Form;
use crate::backend::{PageError, keys, playground, posted};
use crate::backend::request::{FUNCTIONS, takes_html};
use crate::document::shell;
use crate::{account, assets};

/// Pages, server functions (under `/_fn`) and the files they need.
///
/// The router has a fallback, the page that says 404: what is merged with it must have none, and must answer
/// unknown addresses below its own prefixes itself. It needs the session of each request, which
/// `tollkeeper::api::with_layers` gives it.
pub fn pages(services: Services) -> Router {
    let options = LeptosOptions::builder().output_name("tollkeeper").build();
    let context = {
        let services = services.clone();
        move || {
            provide_context(services.clone());
            set_page_headers();
        }
    };
    Router::new()
        .leptos_routes_with_context(&options, generate_route_list(App), context.clone(), shell)
        .route("/playground", answered_by_page(&services, &context, playground::answer))
        .route("/settings/keys", answered_by_page(&services, &context, keys::answer))
        .fallback(leptos_axum::render_app_async_with_context(context, shell))
        .with_state(options)
        .layer(from_fn_with_state(services.clone(), errors_as_pages))
        .layer(from_fn_with_state(services, account::know))
        .merge(assets::routes())
}

/// The address of a page at which its form is sent too: `work` is done, and the page shows what came of it.
fn answered_by_page<S, W, F, T>(
    services: &Services,
    context: &(impl Fn() + Clone + Send + Sync + 'static),
    work: W,
) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
    W: FnOnce(Services, Caller, Form) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = T> + Send,
    T: Clone + Send + Sync + 'static,
{
    let (services, context) = (services.clone(), context.clone());
    post(move |request: Request| posted::answer(services, context, request, work))
}

/// What a form is answered that failed and leads nowhere, such as one sent without the right to it: a page.
async fn errors_as_pages(State(services): State<Services>, request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with(FUNCTIONS) || !takes_html(request.headers()) {
        return next.run(request).await;
    }
    let mut again = Request::new(Body::empty());
    *again.uri_mut() = request.uri().clone();
    again.headers_mut().clone_from(request.headers());
    again.extensions_mut().clone_from(request.extensions());
    let response = next.run(request).await;
    let failed = response.headers().contains_key(server_fn::error::SERVER_FN_ERROR_HEADER);
    if !failed || response.status() == StatusCode::SEE_OTHER {
        return response;
    }
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
    let PageError(error) = PageError::de(body);
    let context = move || {
        provide_context(services.clone());
        provide_context(Failed(Some(error.clone())));
        set_page_headers();
    };
    leptos_axum::render_app_async_with_context(context, shell)(again).await
}

/// Called for pages and for server functions alike. Of these only pages have a nonce, and need a policy.
fn set_page_headers() {
    let Some(response) = use_context::<ResponseOptions>() else {
        return;
    };
    let set = |name: HeaderName, value: &'static str| {
        response.insert_header(name, HeaderValue::from_static(value));
    };
    // What a page shows depends on who asks, and when.
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // Forms sent without script are led back to the page in `Referer`, so it has to be there.
    set(header::REFERRER_POLICY, "same-origin");
    set(header::X_FRAME_OPTIONS, "DENY");
    if let Some(policy) =
        use_nonce().and_then(|nonce| HeaderValue::from_str(&content_security_policy(&nonce)).ok())
    {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
}

fn content_security_policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; \
         img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::{Request, StatusCode};
    use axum::response::Response;
    use tower::ServiceExt;

    use super::*;

    async fn get(path: &str, cookie: &str) -> Response {
        let request = Request::get(path)
            .header("cookie", cookie)
            .body(Body::empty())
            .unwrap();
        served().await.oneshot(request).await.unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn every_answer_has_a_nonce_of_its_own() {
        let policy = async || {
            let response = get("/login", "").await;
            response.headers()[header::CONTENT_SECURITY_POLICY]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert!(policy().await.contains("'nonce-"));
        assert_ne!(policy().await, policy().await);
    }

    #[tokio::test]
    async fn the_theme_is_in_the_first_html() {
        assert!(
            text(get("/login", "theme=dark").await)
                .await
                .contains("data-theme=\"dark\"")
        );
        assert!(!text(get("/login", "").await).await.contains("data-theme"));
    }

    #[tokio::test]
    async fn no_page_has_an_inline_style() {
        for path in ["/login", "/nowhere"] {
            let html = text(get(path, "").await).await;
            assert!(!html.contains(" style=") && !html.contains("<style"), "{path}");
        }
    }

    #[tokio::test]
    async fn an_unknown_address_is_a_page_with_status_404() {
        let response = get("/nowhere", "").await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert!(text(response).await.contains("There is no page at this address."));
    }

    #[tokio::test]
    async fn static_files_are_served() {
        for path in ["/favicon.svg", "/favicon.ico", "/robots.txt"] {
            assert_eq!(get(path, "").await.status(), StatusCode::OK, "{path}");
        }
    }
}
