//! `POST /api/login`

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use tower_sessions::Session;

use super::auth::ClientAddress;
use super::respond::ErrorBody;
use super::{ApiResult, Json};
use crate::identity::Identity;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    #[schema(example = "ada@example.com")]
    email: String,
    password: String,
}

/// Sign in
///
/// Sets the session's cookie.
#[utoipa::path(
    post, path = "/api/login", tag = "Session", request_body = Login,
    responses(
        (status = 204, description = "Signed in"),
        (status = 401, description = "The email or the password is wrong", body = ErrorBody),
        (status = 422, description = "A field is missing or is no text", body = ErrorBody),
        (status = 429, description = "Too many failures for this account or from this address", body = ErrorBody,
         headers(("Retry-After" = u64, description = "Seconds"))),
    ),
)]
pub(super) async fn handler(
    State(identity): State<Identity>,
    ClientAddress(address): ClientAddress,
    session: Session,
    Json(body): Json<Login>,
) -> ApiResult<StatusCode> {
    identity.sign_in(&session, &body.email, body.password, address).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use http::header;

    use super::super::testing::Served;
    use crate::identity::testing::{PASSWORD, Site, count};

    #[tokio::test]
    async fn a_right_pair_gets_the_cookie() {
        let served = Served::with(Router::new()).await;
        served.site.user("ada@example.com", false, &[]).await;
        let answer = served.client().login(" Ada@Example.com", PASSWORD).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""));
        let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.starts_with("tollkeeper=") && !cookie.contains("Secure"), "{cookie}");
        for attribute in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=7776000"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
    }

    #[tokio::test]
    async fn in_production_the_cookie_is_bound_to_the_host_and_to_https() {
        let served = Served::on(Site::open_in(true).await, Router::new());
        served.site.user("ada@example.com", false, &[]).await;
        let mut ada = served.client();
        let given = ada.login("ada@example.com", PASSWORD).await;
        let cookie = given.headers[header::SET_COOKIE].to_str().unwrap();
        assert!(
            cookie.starts_with("__Host-tollkeeper=") && cookie.matches("; Secure").count() == 1,
            "{cookie}"
        );
        assert!(!cookie.contains("Domain"), "{cookie}");
        assert_eq!(ada.get("/api/me", &[]).await.status, 200);
        let taken = ada.post("/api/logout", "", &[]).await;
        let cookie = taken.headers[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.starts_with("__Host-tollkeeper=;") && cookie.contains("; Secure"), "{cookie}");
    }

    #[tokio::test]
    async fn every_mismatch_has_the_same_answer_and_leaves_nothing() {
        let served = Served::with(Router::new()).await;
        served.site.user("ada@example.com", false, &[]).await;
        served.site.user("gone@example.com", false, &[]).await;
        served.site.run("UPDATE users SET removed_at_ms = 1 WHERE email = 'gone@example.com'").await;
        served.site.user("keyless@example.com", false, &[]).await;
        served.site.run("UPDATE users SET password_hash = NULL WHERE email = 'keyless@example.com'").await;
        let wrong = served.client().login("ada@example.com", &PASSWORD.to_uppercase()).await;
        assert_eq!(wrong.status, 401);
        for email in
            ["nobody@example.com", "gone@example.com", "keyless@example.com", "no address", "", "a\0@b"]
        {
            let answer = served.client().login(email, PASSWORD).await;
            assert_eq!((answer.status, &answer.body), (401, &wrong.body), "{email}");
            assert!(answer.headers.get(header::SET_COOKIE).is_none());
        }
        assert_eq!(count(&served.site.store, "SELECT COUNT(*) FROM sessions").await, 0);
    }

    #[tokio::test]
    async fn ten_failures_are_throttled_and_the_right_password_with_them() {
        let served = Served::with(Router::new()).await;
        served.site.user("ada@example.com", false, &[]).await;
        for _ in 0..10 {
            assert_eq!(served.client().login("ada@example.com", "not the password").await.status, 401);
        }
        let refused = served.client().login("ADA@example.com", PASSWORD).await;
        assert_eq!(refused.status, 429);
        assert_eq!(refused.headers[header::RETRY_AFTER], "900");
        assert!(refused.json()["error"].is_string());
        served.site.clock.advance_ms(900_000);
        assert_eq!(served.client().login("ada@example.com", PASSWORD).await.status, 204);
    }

    #[tokio::test]
    async fn a_login_ends_the_session_it_came_with() {
        let served = Served::with(Router::new()).await;
        served.site.user("ada@example.com", false, &[]).await;
        served.site.user("eve@example.com", false, &[]).await;
        let mut shared = served.signed_in("ada@example.com").await;
        let before = shared.clone();
        shared.login("eve@example.com", PASSWORD).await;
        assert_ne!(before.cookie, shared.cookie);
        assert_eq!(before.get("/api/me", &[]).await.status, 401);
        assert_eq!(shared.get("/api/me", &[]).await.json()["email"], "eve@example.com");
    }

    #[tokio::test]
    async fn only_json_is_taken() {
        let served = Served::with(Router::new()).await;
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let client = served.client();
        assert_eq!(client.post("/api/login", "email=a&password=b", &form).await.status, 415);
        assert_eq!(client.post("/api/login", "{", &[]).await.status, 400);
        assert_eq!(client.post("/api/login", r#"{"email":"a@b"}"#, &[]).await.status, 422);
        let odd = client.post("/api/login", r#"{"email":"a@b","password":["hush"]}"#, &[]).await;
        assert!(
            odd.status == 422 && odd.body.contains("password") && !odd.body.contains("hush"),
            "{}",
            odd.body
        );
    }
}
