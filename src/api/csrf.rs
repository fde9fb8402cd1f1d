//! Requests that a page of another origin makes a browser send.
//!
//! `Sec-Fetch-Site` is the browser's own word and decides where it is sent; older browsers send
//! `Origin` alone, which has to name the host that was asked. Who sends neither is no browser.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, Uri, header};

use super::auth::bearer;
use super::respond::{ApiError, OpenAiError};
use crate::model::Error;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// A middleware for all routes. On `/api` and `/v1` it looks at requests that carry a cookie: without
/// one there is no right to abuse, and their JSON can't be sent from a form. Forms are refused
/// without a cookie too, or another page could sign its visitor in as someone else.
pub async fn refuse_other_origins(request: Request, next: Next) -> Response {
    let headers = request.headers();
    if request.method().is_safe() || bearer(headers).is_some() {
        return next.run(request).await;
    }
    let path = request.uri().path();
    let (is_api, is_v1) = (is_below(path, "/api"), is_below(path, "/v1"));
    let at_stake = headers.contains_key(header::COOKIE) || !(is_api || is_v1);
    if !at_stake || is_own_origin(headers, request.uri()) {
        return next.run(request).await;
    }
    let error =
        Error::Forbidden("the request comes from another site's page; send it from this site's own".into());
    if is_v1 {
        OpenAiError::from(error).into_response()
    } else if is_api {
        ApiError(error).into_response()
    } else {
        (StatusCode::FORBIDDEN, error.to_string()).into_response()
    }
}

fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_own_origin(headers: &HeaderMap, uri: &Uri) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return matches!(site.as_bytes(), b"same-origin" | b"none");
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| uri.authority().map(http::uri::Authority::as_str));
    let (Some(host), Ok(origin)) = (host, origin.to_str()) else {
        return false;
    };
    // `null`, and whatever else is no origin of the web, is another one.
    let Some((port, authority)) = [("https://", ":443"), ("http://", ":80")]
        .into_iter()
        .find_map(|(scheme, port)| Some((port, origin.strip_prefix(scheme)?)))
    else {
        return false;
    };
    let without_port =
        |authority: &str| authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase();
    without_port(authority) == without_port(host)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::any;

    use super::super::testing::Served;

    async fn served() -> Served {
        let answer = any(async || "done");
        let paths = ["/api/x", "/v1/x", "/_fn/x", "/apix"];
        Served::with(paths.into_iter().fold(Router::new(), |router, path| router.route(path, answer.clone())))
            .await
    }

    const COOKIE: (&str, &str) = ("cookie", "tollkeeper=x");

    #[tokio::test]
    async fn another_origin_is_known_by_either_header() {
        let served = served().await;
        for (header, value, status) in [
            ("sec-fetch-site", "same-origin", 200),
            ("sec-fetch-site", "none", 200),
            ("sec-fetch-site", "same-site", 403),
            ("sec-fetch-site", "cross-site", 403),
            ("sec-fetch-site", "\"?", 403),
            ("origin", "http://here.example", 200),
            ("origin", "http://HERE.example:80", 200),
            ("origin", "https://here.example", 200),
            ("origin", "http://here.example:81", 403),
            ("origin", "http://sub.here.example", 403),
            ("origin", "http://evil.example", 403),
            ("origin", "null", 403),
            ("origin", "::::", 403),
            ("origin", "", 403),
            ("x-other", "", 200),
        ] {
            let headers = [COOKIE, ("host", "here.example"), (header, value)];
            assert_eq!(
                served.client().post("/api/x", "{}", &headers).await.status,
                status,
                "{header}: {value}"
            );
            assert_eq!(served.client().get("/api/x", &headers).await.status, 200, "{header}: {value}");
        }
    }

    #[tokio::test]
    async fn only_what_is_at_stake_is_refused() {
        let served = served().await;
        let foreign = ("sec-fetch-site", "cross-site");
        let status = async |path: &str, headers: &[(&str, &str)]| {
            served.client().post(path, "{}", headers).await.status
        };
        for path in ["/api/x", "/v1/x"] {
            assert_eq!(status(path, &[foreign]).await, 200, "{path}");
            assert_eq!(status(path, &[foreign, COOKIE]).await, 403, "{path}");
            assert_eq!(
                status(path, &[foreign, COOKIE, ("authorization", "Bearer tk_x")]).await,
                200,
                "{path}"
            );
            assert_eq!(status(path, &[foreign, COOKIE, ("authorization", "Basic x")]).await, 403, "{path}");
        }
        for path in ["/_fn/x", "/apix"] {
            assert_eq!(status(path, &[foreign]).await, 403, "{path}");
            assert_eq!(status(path, &[]).await, 200, "{path}");
        }
        let refused = served.client().post("/api/x", "{}", &[foreign, COOKIE]).await;
        assert!(refused.json()["error"].is_string());
    }
}
