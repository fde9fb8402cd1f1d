//! Routes with sessions around them, asked without a network: for tests.

use axum::Router;
use axum::body::Body;
use http::{Method, Request, header};
use tower::ServiceExt;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{csrf, login, logout, me};
use crate::identity::Identity;
use crate::identity::testing::{PASSWORD, Site};

pub(crate) struct Served {
    pub(crate) site: Site,
    router: Router,
}

#[derive(Clone)]
pub(crate) struct Client {
    router: Router,
    /// The session's cookie, as `name=value`.
    pub(crate) cookie: Option<String>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

impl Served {
    /// The routes, and those of signing in and out.
    pub(crate) async fn with(routes: Router<Identity>) -> Self {
        Self::on(Site::open().await, routes)
    }

    pub(crate) fn on(site: Site, more: Router<Identity>) -> Self {
        let sessions = OpenApiRouter::new()
            .routes(routes!(login::handler))
            .routes(routes!(logout::handler))
            .routes(routes!(me::handler))
            .routes(routes!(me::select_workspace));
        let all = more.merge(Router::from(sessions));
        let served = site.identity.with_sessions(all).with_state(site.identity.clone());
        Served { router: served.layer(axum::middleware::from_fn(csrf::refuse_other_origins)), site }
    }

    pub(crate) fn client(&self) -> Client {
        Client::of(self.router.clone())
    }

    pub(crate) async fn signed_in(&self, email: &str) -> Client {
        let mut client = self.client();
        let answer = client.login(email, PASSWORD).await;
        assert_eq!(answer.status, 204, "{}", answer.body);
        client
    }
}

impl Client {
    /// Nobody yet.
    pub(crate) fn of(router: Router) -> Self {
        Client { router, cookie: None }
    }

    /// Keeps the cookie that it is given.
    pub(crate) async fn login(&mut self, email: &str, password: &str) -> Answer {
        let body = serde_json::json!({ "email": email, "password": password }).to_string();
        let answer = self.post("/api/login", &body, &[]).await;
        if let Some(cookie) = answer.headers.get(header::SET_COOKIE) {
            self.cookie = cookie.to_str().unwrap().split(';').next().map(str::to_owned);
        }
        answer
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, path, "", headers).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(Method::POST, path, body, headers).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(Method::PUT, path, body, headers).await
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "content-type") && !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(cookie) = &self.cookie {
            request = request.header(header::COOKIE, cookie);
        }
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response =
            self.router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}
