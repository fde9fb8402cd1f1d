//! Who may do what: section 3 of the contract, over every route.

use serde_json::{Value, json};

use crate::support::{Client, Setup, Site, words};

/// What `generate`, `sources/generate` and the chat all take for an answer.
fn fits_all() -> crate::scripted::Script {
    let mut answer = crate::support::spec();
    answer["name"] = json!("Visits");
    answer["kind"] = json!("csv");
    answer["columns"] = json!(["day"]);
    words(&answer.to_string(), 7, 3)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_knows_who_may_use_it() {
    let site = Setup::new().rate(0).upstream(fits_all()).start().await;
    let callers = [
        ("the admin", site.sign_in("root@example.com").await),
        ("a source-admin", site.sign_in("ada@example.com").await),
        ("an editor", site.sign_in("eve@example.com").await),
        ("a viewer", site.sign_in("vic@example.com").await),
        ("an editor of another workspace", site.sign_in("gil@example.com").await),
        ("an editor's key", site.key("eve@example.com", "acme")),
        ("a viewer's key", site.key("vic@example.com", "acme")),
        ("the admin's key", site.key("root@example.com", "acme")),
        ("nobody", site.anyone()),
    ];
    let select = json!({ "workspace": "acme" });
    let generate = json!({ "source_id": "sales", "prompt": "x" });
    let said = json!({ "messages": [{ "role": "user", "content": "x" }] });
    let draft = json!({ "description": "x" });
    let limits = json!({ "daily_token_budget": 1_000_000 });
    let completion = json!({ "model": "default", "messages": [{ "role": "user", "content": "x" }] });
    let no = Value::Null;
    let table: [(&str, &str, &Value, [u16; 9]); 18] = [
        // admin, source-admin, editor, viewer, other, key, viewer's key, admin's key, nobody
        ("GET", "/api/me", &no, [200, 200, 200, 200, 200, 200, 200, 200, 401]),
        ("PUT", "/api/me/workspace", &select, [204, 204, 204, 204, 404, 401, 401, 401, 401]),
        ("POST", "/api/generate", &generate, [200, 200, 200, 403, 404, 200, 403, 200, 401]),
        ("POST", "/api/dashboards/revenue/chat", &said, [200, 200, 200, 403, 404, 200, 403, 200, 401]),
        // The other's is charged to the other's own workspace.
        ("POST", "/api/sources/generate", &draft, [200, 200, 200, 403, 200, 200, 403, 200, 401]),
        ("POST", "/v1/chat/completions", &completion, [401, 401, 401, 401, 401, 200, 403, 200, 401]),
        ("GET", "/v1/models", &no, [401, 401, 401, 401, 401, 200, 200, 200, 401]),
        ("GET", "/api/sources", &no, [200, 200, 200, 200, 200, 200, 200, 200, 401]),
        ("GET", "/api/dashboards", &no, [200, 200, 200, 200, 200, 200, 200, 200, 401]),
        ("GET", "/api/dashboards/revenue", &no, [200, 200, 200, 200, 404, 200, 200, 200, 401]),
        ("GET", "/api/admin/workspaces", &no, [200, 200, 403, 403, 403, 403, 403, 403, 401]),
        ("GET", "/api/admin/usage", &no, [200, 200, 403, 403, 403, 403, 403, 403, 401]),
        ("PUT", "/api/admin/workspaces/acme/limits", &limits, [200, 403, 403, 403, 403, 403, 403, 403, 401]),
        ("GET", "/api/admin/providers", &no, [200, 403, 403, 403, 403, 403, 403, 403, 401]),
        ("GET", "/api/admin/audit", &no, [200, 403, 403, 403, 403, 403, 403, 403, 401]),
        ("GET", "/healthz", &no, [200; 9]),
        ("GET", "/readyz", &no, [200; 9]),
        ("GET", "/api/openapi.json", &no, [200; 9]),
    ];
    for (method, path, body, wanted) in table {
        for ((who, client), wanted) in callers.iter().zip(wanted) {
            let request = match body {
                Value::Null => client.request(method, path),
                body => client.with_json(method, path, body),
            };
            let answer = client.send(request).await;
            assert_eq!(answer.status, wanted, "{method} {path} by {who}: {}", answer.text);
            if wanted >= 400 {
                answer.sentence();
            }
        }
    }
    let (_, _, in_globex) = site.totals("workspace_id = 'globex'").await;
    assert_eq!(in_globex, 1, "gil's draft alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_may_not_see_is_as_if_it_did_not_exist() {
    let site = Site::start().await;
    let (bobs_key, gil) = (site.key("bob@example.com", "globex"), site.sign_in("gil@example.com").await);
    let ask = async |client: &Client, source: &str, dashboard: &str| {
        let generate = json!({ "source_id": source, "prompt": "x" });
        let said = json!({ "messages": [{ "role": "user", "content": "x" }] });
        [
            client.post("/api/generate", &generate).await,
            client.post(&format!("/api/dashboards/{dashboard}/chat"), &said).await,
            client.get(&format!("/api/dashboards/{dashboard}")).await,
        ]
    };
    // A key works in its own workspace, whatever else its user is a member of.
    for client in [&bobs_key, &gil] {
        let foreign = ask(client, "sales", "revenue").await;
        let missing = ask(client, "salez", "revenuz").await;
        for (foreign, missing) in foreign.iter().zip(&missing) {
            assert_eq!((foreign.status, missing.status), (404, 404), "{}", foreign.text);
            let renamed = missing.sentence().replace("salez", "sales").replace("revenuz", "revenue");
            assert_eq!(foreign.sentence(), renamed);
        }
        for (path, own) in [("/api/sources", "parts"), ("/api/dashboards", "stock")] {
            let list = client.get(path).await.json();
            let ids: Vec<&str> =
                list.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
            assert_eq!(ids, [own]);
        }
    }
    assert_eq!(site.upstream.requests().len(), 0);
    let own = site.sign_in("ada@example.com").await.get("/api/admin/workspaces").await.json();
    assert_eq!((own.as_array().unwrap().len(), &own[0]["id"]), (1, &json!("acme")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workspace_is_never_taken_from_the_request() {
    let site = Site::start().await;
    let bob = site.sign_in("bob@example.com").await;
    assert_eq!(bob.put("/api/me/workspace", &json!({ "workspace": "globex" })).await.status, 204);
    let generate = json!({ "source_id": "sales", "prompt": "x" });
    let there = bob.with_json("POST", "/api/generate?workspace=globex", &generate);
    assert_eq!(bob.send(there.header("x-workspace", "globex")).await.status, 200);
    let key = site.key("bob@example.com", "acme");
    let there = key.completion(&json!({ "user": "gil@example.com", "metadata": { "workspace": "globex" } }));
    assert_eq!(key.send(there.header("x-workspace", "globex")).await.status, 200);
    assert_eq!(site.totals("workspace_id = 'globex'").await, (0, 0, 0));
    assert_eq!(site.totals("workspace_id = 'acme'").await, (14, 6, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_sites_page_changes_nothing() {
    let site = Site::start().await;
    let root = site.sign_in("root@example.com").await;
    let own = root.base().to_owned();
    let change = |name: &'static str, value: &str| {
        let limits = json!({ "rate_per_minute": 5 });
        root.with_json("PUT", "/api/admin/workspaces/acme/limits", &limits).header(name, value)
    };
    let before = site.tables(&["sessions"]).await;
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        let answer = root.send(change(name, value)).await;
        assert_eq!(answer.status, 403, "{name}: {value}");
        answer.sentence();
    }
    assert_eq!(site.tables(&["sessions"]).await, before);
    assert_eq!(root.send(change("sec-fetch-site", "same-origin")).await.status, 200);
    assert_eq!(root.send(change("origin", &own)).await.status, 200);
}
