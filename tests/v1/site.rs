//! The whole service over real connections, in front of a scripted provider.

use std::sync::Arc;

use reqwest::Method;
use serde_json::Value;
use tokio::net::TcpListener;
use tollkeeper::api;
use tollkeeper::audit::Actor;
use tollkeeper::clock::SystemClock;
use tollkeeper::config::Config;
use tollkeeper::identity::NewKey;
use tollkeeper::listen::{self, Patience};
use tollkeeper::model::WorkspaceId;
use tollkeeper::services::Services;
use tollkeeper::store::Store;

pub struct Site {
    pub services: Services,
    pub address: std::net::SocketAddr,
    pub key: String,
    _folder: tempfile::TempDir,
}

/// A server without limits in front of one provider, and a key.
pub async fn site(provider: &str) -> Site {
    site_with_limits(provider, 0, 0).await
}

/// The same with limits; 0 is none.
pub async fn site_with_limits(provider: &str, rate: u64, budget: u64) -> Site {
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [
        ("DATABASE_URL", format!("sqlite://{}", folder.path().join("x.db").display())),
        ("LLM_RATE_PER_MINUTE", rate.to_string()),
        ("LLM_DAILY_TOKEN_BUDGET", budget.to_string()),
        ("LLM_BASE_URL", provider.into()),
        ("LLM_MODEL", "m-1".into()),
    ];
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let config = Config::from_env(&variables).expect("a configuration");
    let store = Store::open(&config.database).await.expect("a database");
    let mut tx = store.begin().await.expect("a transaction");
    for sql in [
        "INSERT INTO workspaces (id, name, created_at_ms) VALUES ('acme', 'Acme', 0)",
        "INSERT INTO users (id, email, admin, created_at_ms) VALUES ('u', 'ada@example.com', 1, 0)",
    ] {
        sqlx::query(sql).execute(&mut *tx).await.expect("a row");
    }
    tx.commit().await.expect("committed");
    let services = Services::start(config, store, Arc::new(SystemClock), false).await.expect("the services");
    let workspace = WorkspaceId::from("acme");
    let new = NewKey { email: "ada@example.com", workspace: &workspace, name: "test", expires_at: None };
    let key = services.identity.create_key(&Actor::Cli, new).await.expect("a key").key;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = api::with_layers(api::router(&services), &services);
    tokio::spawn(listen::serve(listener, router, services.stopping.clone(), Patience::default()));
    Site { services, address, key, _folder: folder }
}

impl Site {
    /// What a request is answered with.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let url = format!("http://{}{path}", self.address);
        let mut request = reqwest::Client::new().request(method, url).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, body: response.text().await.expect("a text") }
    }

    /// A chat completion, asked for with a good key.
    pub async fn complete(&self, body: &str) -> Answer {
        self.post("/v1/chat/completions", body).await
    }

    /// Any call with a good key.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.key);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        self.send(Method::POST, path, &headers, body).await
    }

    /// Requests, input and output tokens, and what of them was estimated.
    pub async fn charged(&self) -> (i64, i64, i64, i64) {
        sqlx::query_as(
            "SELECT COALESCE(SUM(requests), 0), COALESCE(SUM(input_tokens), 0), COALESCE(SUM(output_tokens), 0),
               COALESCE(SUM(estimated_input_tokens + estimated_output_tokens), 0) FROM llm_usage",
        )
        .fetch_one(self.services.store.read())
        .await
        .expect("the ledger")
    }
}

pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A member of the error in OpenAI's shape.
    pub fn error(&self, member: &str) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        assert!(body["error"]["message"].is_string() && body["error"]["type"].is_string(), "{}", self.body);
        body["error"][member].clone()
    }
}
