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
use crate::backend::request::{FUNCTIONS, takes_html};
use crate::backend::{PageError, keys, playground, posted};
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
    use std::collections::HashMap;
    use std::sync::Arc;

    use tollkeeper::api;
    use tollkeeper::clock::SystemClock;
    use tollkeeper::config::Config;
    use tollkeeper::directory::demo::{DEMO_PASSWORD, make_demo};
    use tollkeeper::store::Store;
    use tower::ServiceExt as _;

    use super::*;

    const ADMIN: &str = "admin@demo.local";
    const SOURCE_ADMIN: &str = "ada@demo.local";
    const EDITOR: &str = "eve@demo.local";
    const VIEWER: &str = "vic@demo.local";

    /// The server over the demo data, in a folder that goes with it.
    struct Site {
        router: Router,
        _folder: tempfile::TempDir,
    }

    impl Site {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let database = format!("sqlite://{}/tollkeeper.db", folder.path().display());
            let config = Config::from_env(&HashMap::from([("DATABASE_URL".to_owned(), database)])).unwrap();
            let store = Store::open(&config.database).await.unwrap();
            let services = Services::start(config, store, Arc::new(SystemClock), true).await.unwrap();
            make_demo(&services.store, &*services.clock).await.unwrap();
            Self { router: api::with_layers(pages(services.clone()), &services), _folder: folder }
        }

        async fn ask(&self, request: Request) -> Response {
            self.router.clone().oneshot(request).await.unwrap()
        }

        async fn get(&self, path: &str, cookie: &str) -> Response {
            self.ask(Request::get(path).header("cookie", cookie).body(Body::empty()).unwrap()).await
        }

        /// Sends a form as a browser without script does.
        async fn send(&self, path: &str, form: &str, from: &str, cookie: &str) -> Response {
            let request = Request::post(path)
                .header("content-type", "application/x-www-form-urlencoded")
                .header("accept", "text/html,application/xhtml+xml")
                .header("referer", format!("http://here.example{from}"))
                .header("cookie", cookie);
            self.ask(request.body(Body::from(form.to_owned())).unwrap()).await
        }

        async fn sign_in(&self, email: &str, password: &str, next: &str) -> Response {
            let form = format!("email={email}&password={password}&next={next}");
            self.send("/_fn/sign-in", &form, "/login?next=%2Fplayground", "").await
        }

        /// The cookie of someone's session.
        async fn session_of(&self, email: &str) -> String {
            cookie(&self.sign_in(email, DEMO_PASSWORD, "").await)
        }
    }

    fn cookie(response: &Response) -> String {
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    fn location(response: &Response) -> &str {
        response.headers()[header::LOCATION].to_str().unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn every_answer_has_a_nonce_of_its_own() {
        let site = Site::new().await;
        let policy = async || {
            let response = site.get("/login", "").await;
            response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned()
        };
        assert!(policy().await.contains("'nonce-"));
        assert_ne!(policy().await, policy().await);
    }

    #[tokio::test]
    async fn the_theme_is_in_the_first_html() {
        let site = Site::new().await;
        assert!(text(site.get("/login", "theme=dark").await).await.contains("data-theme=\"dark\""));
        assert!(!text(site.get("/login", "").await).await.contains("data-theme"));
    }

    #[tokio::test]
    async fn no_page_has_an_inline_style() {
        let site = Site::new().await;
        let admin = site.session_of(ADMIN).await;
        for path in [
            "/login",
            "/nowhere",
            "/settings/workspaces",
            "/settings/providers",
            "/settings/audit",
            "/settings/keys",
            "/playground",
        ] {
            let html = text(site.get(path, &admin).await).await;
            assert!(!html.contains(" style=") && !html.contains("<style"), "{path}");
        }
    }

    #[tokio::test]
    async fn an_unknown_address_is_a_page_with_status_404() {
        let response = Site::new().await.get("/nowhere", "").await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert!(text(response).await.contains("There is no page at this address."));
    }

    #[tokio::test]
    async fn static_files_are_served() {
        let site = Site::new().await;
        for path in ["/favicon.svg", "/favicon.ico", "/robots.txt"] {
            assert_eq!(site.get(path, "").await.status(), StatusCode::OK, "{path}");
        }
    }

    #[tokio::test]
    async fn strangers_are_led_to_the_sign_in_and_back() {
        let site = Site::new().await;
        let response = site.get("/settings/workspaces?search=a%20b", "").await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        assert_eq!(location(&response), "/login?next=%2Fsettings%2Fworkspaces%3Fsearch%3Da%2520b");
        let response =
            site.sign_in(ADMIN, DEMO_PASSWORD, "%2Fsettings%2Fworkspaces%3Fsearch%3Da%2520b").await;
        assert_eq!(
            (response.status(), location(&response)),
            (StatusCode::SEE_OTHER, "/settings/workspaces?search=a%20b")
        );
    }

    #[tokio::test]
    async fn signing_in_leads_to_no_other_site() {
        let site = Site::new().await;
        for next in [
            "https%3A%2F%2Fevil.example",
            "%2F%2Fevil.example",
            "%2F%5Cevil.example",
            "%2F%09%2Fevil.example",
        ] {
            assert_eq!(location(&site.sign_in(ADMIN, DEMO_PASSWORD, next).await), "/", "{next}");
        }
    }

    #[tokio::test]
    async fn a_wrong_pair_comes_back_to_the_form_and_is_told_once() {
        let site = Site::new().await;
        let response = site.sign_in(ADMIN, "wrong", "").await;
        assert_eq!(
            (response.status(), location(&response)),
            (StatusCode::SEE_OTHER, "/login?next=%2Fplayground")
        );
        let response = site.get("/login?next=%2Fplayground", &cookie(&response)).await;
        assert!(response.headers()[header::SET_COOKIE].to_str().unwrap().starts_with("flash=; "));
        let html = text(response).await;
        assert!(html.contains("role=\"alert\"") && html.contains("value=\"/playground\""), "{html}");
    }

    #[tokio::test]
    async fn too_many_tries_are_told_when_to_try_again() {
        let site = Site::new().await;
        let mut last = site.sign_in(VIEWER, "wrong", "").await;
        for _ in 0..10 {
            last = site.sign_in(VIEWER, "wrong", "").await;
        }
        let html = text(site.get("/login", &cookie(&last)).await).await;
        let (_, alert) = html.split_once("role=\"alert\"").unwrap();
        assert!(alert.contains("oo many"), "{alert}");
    }

    #[tokio::test]
    async fn an_error_in_the_address_is_not_shown() {
        let site = Site::new().await;
        let html =
            text(site.get("/login?__path=%2F_fn%2Fsign-in&__err=eyJGb3JiaWRkZW4iOiJldmlsIn0", "").await)
                .await;
        assert!(!html.contains("role=\"alert\""));
    }

    #[tokio::test]
    async fn the_start_page_leads_by_role() {
        let site = Site::new().await;
        for (email, to) in
            [(ADMIN, "/settings/workspaces"), (SOURCE_ADMIN, "/settings/workspaces"), (EDITOR, "/playground")]
        {
            let response = site.get("/", &site.session_of(email).await).await;
            assert_eq!((response.status(), location(&response)), (StatusCode::SEE_OTHER, to), "{email}");
        }
        assert_eq!(location(&site.get("/", "").await), "/login");
        let response = site.get("/", &site.session_of(VIEWER).await).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(text(response).await.contains("viewer"));
    }

    #[tokio::test]
    async fn pages_answer_by_role() {
        let site = Site::new().await;
        let paths = ["/settings/workspaces", "/settings/audit", "/settings/keys", "/playground"];
        for (email, statuses) in [
            (ADMIN, [200, 200, 200, 200]),
            (SOURCE_ADMIN, [200, 403, 200, 200]),
            (EDITOR, [403, 403, 200, 200]),
            (VIEWER, [403, 403, 403, 403]),
        ] {
            let session = site.session_of(email).await;
            for (path, status) in paths.into_iter().zip(statuses) {
                assert_eq!(site.get(path, &session).await.status().as_u16(), status, "{email} {path}");
            }
        }
    }

    #[tokio::test]
    async fn a_form_without_the_right_to_it_is_a_page_that_says_so() {
        let site = Site::new().await;
        let editor = site.session_of(EDITOR).await;
        let response = site.send("/_fn/select-workspace", "workspace=nowhere", "/playground", &editor).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert!(text(response).await.contains("Not found"));
        let response = site.send("/_fn/select-workspace", "workspace=a", "/playground", "").await;
        assert_eq!(location(&response), "/login?next=%2Fplayground");
    }

    #[tokio::test]
    async fn signing_out_ends_the_session() {
        let site = Site::new().await;
        let editor = site.session_of(EDITOR).await;
        let response = site.send("/_fn/sign-out", "", "/playground", &editor).await;
        assert_eq!(location(&response), "/login");
        assert_eq!(location(&site.get("/playground", &editor).await), "/login?next=%2Fplayground");
    }
}
