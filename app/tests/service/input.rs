//! Bad input: the right 4xx with one sentence, nothing changed, nothing spent.

use serde_json::{Value, json};

use crate::support::{Answer, Client, Site};

/// A route that takes a body, with one that is fine and the ways in which a field can be wrong.
struct Route {
    method: &'static str,
    path: &'static str,
    fine: Value,
    /// By JSON pointer: what stands there instead, null where the field is left out.
    wrong: Vec<(&'static str, Value)>,
    largest: usize,
}

const MIB: usize = 1024 * 1024;

fn route(method: &'static str, path: &'static str, fine: Value, wrong: Vec<(&'static str, Value)>) -> Route {
    Route { method, path, fine, wrong, largest: MIB }
}

fn routes() -> Vec<Route> {
    let message = json!({ "role": "user", "content": "Hello" });
    vec![
        route(
            "POST",
            "/api/login",
            json!({ "email": "eve@example.com", "password": "wrong" }),
            vec![
                ("/email", json!(5)),
                ("/email", Value::Null),
                ("/password", json!(["x"])),
                ("/password", Value::Null),
            ],
        ),
        route(
            "PUT",
            "/api/me/workspace",
            json!({ "workspace": "nowhere" }),
            vec![("/workspace", json!({})), ("/workspace", Value::Null), ("/workspace", json!(1))],
        ),
        route(
            "POST",
            "/api/generate",
            json!({ "source_id": "nowhere", "prompt": "x" }),
            vec![
                ("/source_id", Value::Null),
                ("/source_id", json!(7)),
                ("/prompt", Value::Null),
                ("/prompt", json!(["x"])),
                ("/prompt", json!("")),
                ("/prompt", json!(" \n")),
            ],
        ),
        route(
            "POST",
            "/api/sources/generate",
            json!({ "description": "x" }),
            vec![
                ("/description", Value::Null),
                ("/description", json!(false)),
                ("/description", json!("  ")),
            ],
        ),
        route(
            "POST",
            "/api/dashboards/revenue/chat",
            json!({ "messages": [message] }),
            vec![
                ("/messages", Value::Null),
                ("/messages", json!("hello")),
                ("/messages", json!([])),
                ("/messages", json!([{ "role": "wizard", "content": "x" }])),
                ("/messages", json!([{ "role": "user" }])),
                ("/messages", json!([{ "role": "user", "content": {} }])),
                ("/messages", json!([{ "role": "assistant", "content": "x" }])),
                ("/messages", json!([{ "role": "user", "content": " " }])),
                ("/messages", Value::Array(vec![message.clone(); 1_000])),
            ],
        ),
        route(
            "PUT",
            "/api/admin/workspaces/acme/limits",
            json!({ "rate_per_minute": 5 }),
            vec![
                ("/rate_per_minute", json!(-1)),
                ("/rate_per_minute", json!(1.5)),
                ("/rate_per_minute", json!("5")),
                ("/rate_per_minute", json!(true)),
                ("/rate_per_minute", json!([5])),
                ("/rate_per_minute", json!(2_147_483_648_u64)),
                ("/daily_token_budget", json!(-1)),
                ("/daily_token_budget", json!(0.5)),
                ("/daily_token_budget", json!({})),
                ("/daily_token_budget", json!(9_007_199_254_740_992_u64)),
                ("/colour", json!(1)),
            ],
        ),
        Route {
            method: "POST",
            path: "/v1/chat/completions",
            fine: json!({ "model": "default", "messages": [message] }),
            wrong: vec![
                ("/model", Value::Null),
                ("/model", json!(3)),
                ("/messages", Value::Null),
                ("/messages", json!("hello")),
                ("/messages", json!([])),
                ("/stream", json!("yes")),
            ],
            largest: 10 * MIB,
        },
    ]
}

/// `/v1` takes keys, the settings an admin, all others anyone's session.
async fn callers(site: &Site) -> impl Fn(&str) -> Client {
    let (key, root, eve) = (
        site.key("eve@example.com", "acme"),
        site.sign_in("root@example.com").await,
        site.sign_in("eve@example.com").await,
    );
    move |path| {
        if path.starts_with("/v1") {
            &key
        } else if path.starts_with("/api/admin") {
            &root
        } else {
            &eve
        }
        .clone()
    }
}

async fn raw(client: &Client, route: &Route, kind: Option<&str>, body: Vec<u8>) -> Answer {
    let request = client.request(route.method, route.path).body(body);
    client
        .send(match kind {
            Some(kind) => request.header("content-type", kind),
            None => request,
        })
        .await
}

/// Tables in which a request that is refused may leave when its session or key was last used.
const LAST_USED: [&str; 2] = ["sessions", "api_keys"];
const JSON: Option<&str> = Some("application/json");

#[tokio::test(flavor = "multi_thread")]
async fn every_route_refuses_what_it_cannot_read() {
    let site = Site::start().await;
    let caller = callers(&site).await;
    let before = site.tables(&LAST_USED).await;
    for route in routes() {
        let client = caller(route.path);
        let name = format!("{} {}", route.method, route.path);
        let text = route.fine.to_string();
        let mut no_unicode = text.clone().into_bytes();
        let end = no_unicode.len() - 3;
        no_unicode.insert(end, 0xff);
        let cut = text.as_bytes()[..text.len() - 1].to_vec();
        let deep = [b"[".repeat(100_000), b"{\"a\":".repeat(100_000)].concat();
        for body in [
            Vec::new(),
            b"{".to_vec(),
            b"hello".to_vec(),
            b"\0\x01\x02".to_vec(),
            cut,
            format!("{text}}}").into_bytes(),
            no_unicode,
            deep,
        ] {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            let answer = raw(&client, &route, JSON, body).await;
            assert_eq!(answer.status, 400, "{name}: {shown:?}: {}", answer.text);
            answer.sentence();
        }
        for kind in
            [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("multipart/form-data")]
        {
            let answer = raw(&client, &route, kind, text.clone().into_bytes()).await;
            assert_eq!(answer.status, 415, "{name}: {kind:?}: {}", answer.text);
            answer.sentence();
        }
        let padding = " ".repeat(route.largest);
        let answer = raw(&client, &route, JSON, format!("{padding}{text}").into_bytes()).await;
        assert_eq!(answer.status, 413, "{name}: {}", answer.text);
        answer.sentence();
    }
    assert_nothing_happened(&site, &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_names_the_field_that_is_wrong() {
    let site = Site::start().await;
    let caller = callers(&site).await;
    let before = site.tables(&LAST_USED).await;
    for route in routes() {
        let client = caller(route.path);
        for (pointer, value) in &route.wrong {
            let mut body = route.fine.clone();
            let field = pointer.trim_start_matches('/');
            let fields = body.as_object_mut().unwrap();
            // Null inherits a limit, and is in no table here.
            match value {
                Value::Null => drop(fields.remove(field)),
                value => drop(fields.insert(field.into(), value.clone())),
            }
            let answer = raw(&client, &route, JSON, body.to_string().into_bytes()).await;
            let what = format!("{} {} with {field} {value}", route.method, route.path);
            assert_eq!(answer.status, 422, "{what}: {}", answer.text);
            assert!(answer.sentence().contains(field), "{what}: {}", answer.text);
        }
        for body in ["[]", "null", "7", "\"text\"", "[{}]"] {
            let answer = raw(&client, &route, JSON, body.into()).await;
            assert_eq!(answer.status, 422, "{} {}: {body}: {}", route.method, route.path, answer.text);
            answer.sentence();
        }
    }
    let (eve, root) = (caller("/api"), caller("/api/admin"));
    let odd = json!({ "email": "x@example.com", "password": "x", "a\u{1b}[2Jb\n": 1 });
    let sentence = eve.post("/api/login", &odd).await.sentence();
    assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
    assert_eq!(root.put("/api/admin/workspaces/acme/limits", &json!({})).await.status, 422);
    for query in [
        "usage?from=yesterday",
        "usage?to=2026-13-01",
        "usage?from=2026-02-02&to=2026-02-01",
        "audit?limit=0",
        "audit?limit=201",
        "audit?limit=many",
        "audit?before=x",
        "audit?from=soon",
        "audit?to=12:00",
        "audit?actor=%00",
        "usage?workspace=%00",
    ] {
        let answer = root.get(&format!("/api/admin/{query}")).await;
        assert_eq!(answer.status, 422, "{query}: {}", answer.text);
        answer.sentence();
    }
    assert_nothing_happened(&site, &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_none_are_not_found() {
    let site = Site::start().await;
    let caller = callers(&site).await;
    let (eve, root, key) = (caller("/api"), caller("/api/admin"), caller("/v1"));
    let before = site.tables(&LAST_USED).await;
    let long = "x".repeat(5_000);
    for id in [
        "nowhere",
        "' OR '1'='1",
        "sales'; DROP TABLE llm_usage; --",
        "%",
        "_",
        "../../etc/passwd",
        "sales\0",
        "\u{202e}selas",
        "\u{1b}[2J",
        "sales\nX-Injected: 1",
        &long,
    ] {
        let escaped = escaped(id);
        let said = json!({ "messages": [{ "role": "user", "content": "Hello" }] });
        let completion = json!({ "model": id, "messages": [{ "role": "user", "content": "x" }] });
        for answer in [
            eve.post("/api/generate", &json!({ "source_id": id, "prompt": "x" })).await,
            eve.post(&format!("/api/dashboards/{escaped}/chat"), &said).await,
            eve.get(&format!("/api/dashboards/{escaped}")).await,
            eve.put("/api/me/workspace", &json!({ "workspace": id })).await,
            root.put(&format!("/api/admin/workspaces/{escaped}/limits"), &json!({ "rate_per_minute": 5 }))
                .await,
            key.post("/v1/chat/completions", &completion).await,
            key.post("/v1/chat/completions", &json!({ "model": format!("alpha/{id}"), "messages": [{}] }))
                .await,
        ] {
            assert!(matches!(answer.status, 400 | 404 | 422), "{id:?}: {} {}", answer.status, answer.text);
            let sentence = answer.sentence();
            assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
            assert!(sentence.len() < 1_000, "{sentence}");
        }
    }
    for path in ["/api/dashboards/%ff", "/api/dashboards/%", "/api/nowhere", "/v1/nowhere", "/api", "/v1"] {
        let answer = eve.get(path).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {} {}", answer.status, answer.text);
        answer.sentence();
    }
    for (method, path) in
        [("DELETE", "/api/me"), ("GET", "/api/generate"), ("PATCH", "/api/login"), ("PUT", "/v1/models")]
    {
        let answer = eve.send(eve.request(method, path)).await;
        assert_eq!(answer.status, 405, "{method} {path}: {}", answer.text);
        answer.sentence();
    }
    assert_nothing_happened(&site, &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_headers_are_nobodys_fault() {
    let site = Site::start().await;
    let anyone = site.anyone();
    let ask = |name: &'static str, value: String| {
        let body = json!({ "source_id": "sales", "prompt": "x" });
        anyone.with_json("POST", "/api/generate", &body).header(name, value)
    };
    for (name, value) in [
        ("authorization", "Bearer".to_owned()),
        ("authorization", "Bearer ".to_owned()),
        ("authorization", "Basic dTpw".to_owned()),
        ("authorization", format!("Bearer tk_{}", "x".repeat(4_000))),
        ("authorization", "Bearer tk_' OR 1=1 --".to_owned()),
        ("cookie", "tollkeeper=; tollkeeper=%00; =".to_owned()),
        ("cookie", format!("tollkeeper={}", "A".repeat(3_000))),
        ("cookie", "tollkeeper=' OR 1=1 --".to_owned()),
    ] {
        let answer = anyone.send(ask(name, value.clone())).await;
        assert_eq!(answer.status, 401, "{name}: {value}: {}", answer.text);
        answer.sentence();
    }
    assert_eq!(site.upstream.requests().len(), 0);
}

/// As a part of a path, whatever is in it.
fn escaped(id: &str) -> String {
    id.bytes().fold(String::new(), |path, byte| format!("{path}%{byte:02X}"))
}

/// The tables are as they were, no provider was asked, and the rate's bucket is full.
async fn assert_nothing_happened(site: &Site, before: &std::collections::BTreeMap<String, Vec<String>>) {
    assert_eq!(&site.tables(&LAST_USED).await, before);
    assert_eq!(site.upstream.requests().len(), 0);
    let answer = site.key("eve@example.com", "acme").complete().await;
    assert_eq!((answer.status, answer.limit("ratelimit", "rate", "r")), (200, Some(19)), "{}", answer.text);
}
