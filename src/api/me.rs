//! `GET /api/me` and `PUT /api/me/workspace`

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use tower_sessions::Session;

use super::auth::{SessionOnly, Signed};
use super::respond::ErrorBody;
use super::{ApiResult, Json};
use crate::identity::Identity;
use crate::model::{Me, WorkspaceId};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    #[schema(value_type = String, example = "acme")]
    workspace: WorkspaceId,
}

/// Who is calling
///
/// With an API key: its user, with the membership in the key's workspace alone.
#[utoipa::path(
    get, path = "/api/me", tag = "Session",
    responses(
        (status = 200, body = Me),
        (status = 401, description = "Not signed in", body = ErrorBody),
    ),
)]
pub(super) async fn handler(Signed(caller): Signed) -> axum::Json<Me> {
    axum::Json(caller.me())
}

/// Select a workspace for this session
///
/// One of the caller's memberships; any workspace for platform admins.
#[utoipa::path(
    put, path = "/api/me/workspace", tag = "Session", request_body = Selection,
    responses(
        (status = 204, description = "Selected"),
        (status = 401, description = "Not signed in, or with an API key", body = ErrorBody),
        (status = 403, description = "Sent by another site's page", body = ErrorBody),
        (status = 404, description = "No workspace of the caller's", body = ErrorBody),
        (status = 422, description = "The field is missing or is no text", body = ErrorBody),
    ),
)]
pub(super) async fn select_workspace(
    State(identity): State<Identity>,
    SessionOnly(caller): SessionOnly,
    session: Session,
    Json(body): Json<Selection>,
) -> ApiResult<StatusCode> {
    identity.select_workspace(&session, &caller, body.workspace).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use serde_json::{Value, json};

    use super::super::testing::{Client, Served};
    use crate::audit::Actor;
    use crate::identity::NewKey;
    use crate::model::Role;

    async fn served() -> Served {
        let served = Served::with(Router::new()).await;
        for workspace in ["acme", "globex", "hooli"] {
            served.site.workspace(workspace).await;
        }
        served.site.user("root@example.com", true, &[]).await;
        let roles = [("globex", Role::Viewer), ("acme", Role::Editor)];
        served.site.user("bob@example.com", false, &roles).await;
        served
    }

    async fn select(client: &Client, workspace: &str) -> u16 {
        client.put("/api/me/workspace", &json!({ "workspace": workspace }).to_string(), &[]).await.status
    }

    async fn selected(client: &Client) -> Value {
        client.get("/api/me", &[]).await.json()["selected_workspace"].clone()
    }

    #[tokio::test]
    async fn tells_who_is_calling() {
        let served = served().await;
        assert_eq!(served.client().get("/api/me", &[]).await.status, 401);
        let bob = served.signed_in("bob@example.com").await;
        let memberships = [
            json!({ "workspace": "acme", "role": "editor" }),
            json!({ "workspace": "globex", "role": "viewer" }),
        ];
        assert_eq!(
            bob.get("/api/me", &[]).await.json(),
            json!({ "email": "bob@example.com", "admin": false, "memberships": memberships, "selected_workspace": "acme" })
        );
        let root = served.signed_in("root@example.com").await.get("/api/me", &[]).await.json();
        assert_eq!((&root["admin"], &root["selected_workspace"]), (&json!(true), &Value::Null));
        let new =
            NewKey { email: "bob@example.com", workspace: &"globex".into(), name: "ci", expires_at: None };
        let key = served.site.identity.create_key(&Actor::Cli, new).await.unwrap().key;
        let by_key =
            served.client().get("/api/me", &[("authorization", &format!("Bearer {key}"))]).await.json();
        assert_eq!(by_key["selected_workspace"], "globex");
        assert_eq!(by_key["memberships"], json!([memberships[1]]));
    }

    #[tokio::test]
    async fn a_selection_is_the_sessions_alone() {
        let served = served().await;
        let (one, other) =
            (served.signed_in("bob@example.com").await, served.signed_in("bob@example.com").await);
        assert_eq!(select(&one, "globex").await, 204);
        assert_eq!((selected(&one).await, selected(&other).await), (json!("globex"), json!("acme")));
        for foreign in ["hooli", "nowhere", "", "no\0where", "../acme"] {
            assert_eq!(select(&one, foreign).await, 404, "{foreign}");
        }
        assert_eq!(selected(&one).await, "globex");
        assert_eq!(served.client().put("/api/me/workspace", "{}", &[]).await.status, 401);
        assert_eq!(one.put("/api/me/workspace", "{}", &[]).await.status, 422);
        assert_eq!(one.put("/api/me/workspace", r#"{"workspace":null}"#, &[]).await.status, 422);
    }

    #[tokio::test]
    async fn a_selection_lapses_with_the_membership_and_with_the_workspace() {
        let served = served().await;
        let bob = served.signed_in("bob@example.com").await;
        let root = served.signed_in("root@example.com").await;
        assert_eq!((select(&bob, "globex").await, select(&root, "hooli").await), (204, 204));
        assert_eq!(selected(&root).await, "hooli");
        served.site.run("DELETE FROM memberships WHERE workspace_id = 'globex'").await;
        assert_eq!(selected(&bob).await, "acme");
        served.site.run("DELETE FROM workspaces WHERE id = 'hooli'").await;
        assert_eq!(selected(&root).await, Value::Null);
        assert_eq!(select(&root, "hooli").await, 404);
    }

    #[tokio::test]
    async fn a_database_that_is_gone_is_a_503_with_a_sentence() {
        let served = served().await;
        let mut bob = served.signed_in("bob@example.com").await;
        served.site.store.close().await;
        for answer in [
            bob.get("/api/me", &[]).await,
            bob.put("/api/me/workspace", r#"{"workspace":"acme"}"#, &[]).await,
            bob.post("/api/logout", "", &[]).await,
            bob.login("bob@example.com", "whatever it was").await,
        ] {
            assert_eq!(answer.status, 503);
            assert!(answer.json()["error"].is_string(), "{}", answer.body);
        }
    }
}
