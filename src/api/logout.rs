//! `POST /api/logout`

use axum::extract::State;
use http::{HeaderMap, StatusCode};
use tower_sessions::Session;

use super::ApiResult;
use super::auth::refuse_bearer;
use super::respond::ErrorBody;
use crate::identity::Identity;

/// Sign out
///
/// Ends the session, and takes its cookie back. Who isn't signed in is told the same.
#[utoipa::path(
    post, path = "/api/logout", tag = "Session",
    responses(
        (status = 204, description = "Signed out"),
        (status = 401, description = "An API key was sent, which has no session to end", body = ErrorBody),
        (status = 403, description = "Sent by another site's page", body = ErrorBody),
    ),
)]
pub(super) async fn handler(
    State(identity): State<Identity>,
    headers: HeaderMap,
    session: Session,
) -> ApiResult<StatusCode> {
    refuse_bearer(&headers)?;
    identity.sign_out(&session).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use http::header;

    use super::super::testing::Served;

    #[tokio::test]
    async fn the_old_cookie_is_worth_nothing_and_another_session_stays() {
        let served = Served::with(Router::new()).await;
        served.site.user("ada@example.com", false, &[]).await;
        let (one, other) =
            (served.signed_in("ada@example.com").await, served.signed_in("ada@example.com").await);
        let answer = one.post("/api/logout", "", &[]).await;
        assert_eq!(answer.status, 204);
        assert!(answer.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(one.get("/api/me", &[]).await.status, 401);
        assert_eq!(other.get("/api/me", &[]).await.status, 200);
    }

    #[tokio::test]
    async fn whoever_is_not_signed_in_is_signed_out_too() {
        let served = Served::with(Router::new()).await;
        assert_eq!(served.client().post("/api/logout", "", &[]).await.status, 204);
        let garbage = [("cookie", "tollkeeper=AAAAAAAAAAAAAAAAAAAAAA")];
        assert_eq!(served.client().post("/api/logout", "", &garbage).await.status, 204);
        let key = [("authorization", "Bearer tk_x")];
        assert_eq!(served.client().post("/api/logout", "", &key).await.status, 401);
    }
}
