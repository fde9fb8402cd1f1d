//! `GET /api/admin/providers`: every candidate with its windows, as they stand.

use axum::Json;
use axum::extract::State;

use super::auth::SettingsCaller;
use super::respond::{ApiResult, ErrorBody};
use crate::providers::ProviderRow;
use crate::services::Services;

#[utoipa::path(
    get, path = "/api/admin/providers", tag = "Admin",
    responses((status = 200, body = Vec<ProviderRow>), (status = 403, body = ErrorBody))
)]
pub async fn handler(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
) -> ApiResult<Json<Vec<ProviderRow>>> {
    caller.require_admin()?;
    Ok(Json(services.pool.status()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use http::Method;
    use serde_json::json;

    use super::*;
    use crate::api::testing::Client;
    use crate::api::{router, with_layers};
    use crate::clock::SystemClock;
    use crate::config::Config;
    use crate::directory::demo::{DEMO_PASSWORD, make_demo};
    use crate::providers::scripted::{Act, Scripted};
    use crate::store::testing::{Fresh, fresh};

    const HERE: &str = "/api/admin/providers";

    /// The whole API over the demo's people, and a provider.
    async fn site() -> (Services, Client, Scripted, tempfile::TempDir) {
        let body = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,
            "message":{"role":"assistant","content":"OK"},"finish_reason":"stop"}],
            "usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-ratelimit-limit-requests: 77\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let provider = Scripted::start(vec![Act::Send(head.into_bytes()), Act::Close]).await;
        let Fresh { store, folder } = fresh().await;
        let database = format!("sqlite://{}/x.db", folder.path().display());
        let config = Config::from_env(&HashMap::from([("DATABASE_URL".to_owned(), database)])).unwrap();
        let services = Services::start(config, store, Arc::new(SystemClock), false).await.unwrap();
        make_demo(&services.store, &*services.clock).await.unwrap();
        let client = Client::of(with_layers(router(&services), &services));
        (services, client, provider, folder)
    }

    async fn signed_in(client: &Client, email: &str) -> Client {
        let mut client = client.clone();
        assert_eq!(client.login(email, DEMO_PASSWORD).await.status, 204);
        client
    }

    #[tokio::test]
    async fn an_admin_makes_a_pool_tests_it_and_sees_it() {
        let (services, client, provider, _folder) = site().await;
        let admin = signed_in(&client, "admin@demo.local").await;
        let post = async |path: &str, body: serde_json::Value| {
            admin.post(&format!("{HERE}/{path}"), &body.to_string(), &[]).await
        };
        let base_url = provider.base_url();
        assert_eq!(post("platforms", json!({ "id": "p", "base_url": base_url })).await.status, 201);
        let model = json!({ "platform": "p", "model": "a/m", "alias": "default", "rpm": 20 });
        assert_eq!(post("models", model).await.status, 201);
        let key = json!({ "platform": "p", "label": "main", "secret": "sk-hush" });
        let made = post("keys", key).await;
        assert_eq!(made.status, 201);
        let id = made.json()["id"].as_str().unwrap().to_owned();

        let candidate = json!({ "platform": "p", "model": "a/m", "key_id": id });
        let tested = post("test", candidate.clone()).await;
        assert_eq!((tested.status, &tested.json()["ok"]), (200, &json!(true)), "{}", tested.body);
        assert_eq!(provider.requests()[0].header("authorization"), Some("Bearer sk-hush"));
        assert_eq!(post("clear-cooldown", candidate).await.json(), json!({ "cleared": false }));

        let change = json!({ "platform": "p", "model": "a/m", "rpm": null, "tpd": 500 }).to_string();
        assert_eq!(admin.ask(Method::PATCH, &format!("{HERE}/models"), &change, &[]).await.status, 204);
        let rows = admin.get(HERE, &[]).await;
        let json = rows.json();
        let row = &json[0];
        assert_eq!(
            (&row["rpm"], &row["tpd"]),
            (&json!({"used": 1, "limit": null}), &json!({"used": 11, "limit": 500}))
        );
        assert!(!rows.body.contains("hush"));
        let page = services.reports.providers_page(&services.pool, None).await.unwrap();
        assert_eq!(page.candidates[0].stated_otherwise(), (Some(77), None));

        let metrics = admin.get("/metrics", &[]).await.body;
        assert!(
            metrics.contains(
                "tollkeeper_provider_used{platform=\"p\",model=\"a/m\",key=\"main\",kind=\"tpd\"} 11"
            )
        );
        let off = json!({ "enabled": false }).to_string();
        let key = format!("{HERE}/keys/{id}");
        assert_eq!(admin.ask(Method::PATCH, &key, &off, &[]).await.status, 204);
        assert_eq!(admin.get(HERE, &[]).await.json(), json!([]));
        assert_eq!(admin.ask(Method::DELETE, &key, "", &[]).await.status, 204);
        let model = format!("{HERE}/models?platform=p&model=a%2Fm");
        assert_eq!(admin.ask(Method::DELETE, &model, "", &[]).await.status, 204);
        let platform = format!("{HERE}/platforms/p");
        assert_eq!(admin.ask(Method::DELETE, &platform, "", &[]).await.status, 204);
        assert_eq!(admin.ask(Method::DELETE, &platform, "", &[]).await.status, 404);
    }

    #[tokio::test]
    async fn nobody_else_changes_anything() {
        let (services, client, _provider, _folder) = site().await;
        let ada = signed_in(&client, "ada@demo.local").await;
        let before = crate::store::testing::dump(&services.store).await["platforms"].clone();
        for (method, path) in [
            (Method::POST, "platforms"),
            (Method::DELETE, "platforms/p"),
            (Method::POST, "keys"),
            (Method::PATCH, "keys/k"),
            (Method::DELETE, "keys/k"),
            (Method::POST, "models"),
            (Method::PATCH, "models"),
            (Method::DELETE, "models?platform=p&model=m"),
            (Method::POST, "clear-cooldown"),
            (Method::POST, "test"),
        ] {
            let path = format!("{HERE}/{path}");
            let body = if method == Method::DELETE { "" } else { "{}" };
            assert_eq!(ada.ask(method.clone(), &path, body, &[]).await.status, 403, "{method} {path}");
            assert_eq!(client.ask(method.clone(), &path, body, &[]).await.status, 401, "{method} {path}");
        }
        assert_eq!(crate::store::testing::dump(&services.store).await["platforms"], before);
    }

    #[tokio::test]
    async fn what_can_not_be_is_a_4xx_that_names_it() {
        let (_services, client, _provider, _folder) = site().await;
        let admin = signed_in(&client, "admin@demo.local").await;
        for (method, path, body, status) in [
            (Method::POST, "platforms", r#"{"id":"p"}"#, 422),
            (Method::POST, "platforms", r#"{"id":"p","base_url":"no"}"#, 422),
            (Method::POST, "keys", r#"{"platform":"gone","label":"x","secret":"sk-hush"}"#, 404),
            (Method::POST, "keys", r#"{"platform":"gone","label":"x","secret":5}"#, 422),
            (Method::PATCH, "keys/gone", "{}", 422),
            (Method::PATCH, "keys/gone", r#"{"enabled":true}"#, 404),
            (Method::PATCH, "models", r#"{"platform":"p","model":"m"}"#, 422),
            (Method::PATCH, "models", r#"{"platform":"p","model":"m","rpm":-1}"#, 422),
            (Method::PATCH, "models", r#"{"platform":"p","model":"m","rpm":1}"#, 404),
            (Method::DELETE, "models?platform=p", "", 422),
            (Method::POST, "test", r#"{"platform":"p","model":"m","key_id":"k"}"#, 404),
            (Method::POST, "test", "{", 400),
        ] {
            let answer = admin.ask(method.clone(), &format!("{HERE}/{path}"), body, &[]).await;
            assert_eq!(answer.status, status, "{method} {path} {body}: {}", answer.body);
            assert!(answer.json()["error"].is_string() && !answer.body.contains("hush"));
        }
    }
}
