//! What operators rely on: nothing secret is kept or logged, and production is strict.

use serde_json::json;

use crate::scripted::answer;
use crate::support::{Client, PASSWORD, Setup, Site, UPSTREAM_KEY, last, streamed, until, words};

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_prompt_or_output_is_in_a_log_or_the_database() {
    const PROMPT: &str = "zebra-in-the-prompt";
    const OUTPUT: &str = "walrus-in-the-output";
    let mut site = Setup::new()
        .env("RUST_LOG", "trace")
        .directory("[[platform]]\nid = \"beta\"\nbase_url = \"UPSTREAM\"\n[[platform.key]]\nlabel = \"main\"\nsecret = \"sk-beta-secret\"\n\
                    [[platform.model]]\nid = \"m\"\nalias = \"default\"\n")
        .start()
        .await;
    let (session, key) = (site.sign_in("eve@example.com").await, site.key("eve@example.com", "acme"));
    let ask = async |client: &Client, stream: bool| {
        let messages = json!([{ "role": "user", "content": PROMPT }]);
        if stream {
            let request = client.completion(&json!({ "stream": true, "messages": messages }));
            client.send(request).await
        } else {
            client.post("/api/generate", &json!({ "source_id": "sales", "prompt": PROMPT })).await
        }
    };
    for _ in 0..2 {
        site.upstream.next(words(OUTPUT, 1, 1));
    }
    assert_eq!(ask(&session, false).await.status, 502, "no valid spec");
    site.upstream.next(streamed(OUTPUT, Vec::new(), last(1, 1)));
    assert_eq!(ask(&key, true).await.status, 200);
    let chat = json!({ "messages": [{ "role": "user", "content": PROMPT }] });
    site.upstream.next(words(OUTPUT, 1, 1));
    assert_eq!(session.post("/api/dashboards/revenue/chat", &chat).await.status, 200);
    // A provider that repeats it all in an error.
    let echo = json!({ "error": { "message": format!("{PROMPT} {OUTPUT} sk-beta-secret") } }).to_string();
    site.upstream.next(answer(500, &[], &echo));
    assert_eq!(ask(&key, true).await.status, 502);
    // What is refused as malformed is not logged either.
    key.post("/v1/chat/completions", &json!({ "model": 5, "messages": PROMPT })).await;
    session.post("/api/login", &json!({ "email": "eve@example.com", "password": "wrong-but-secret" })).await;

    let kept = site.database_files();
    site.terminate();
    let (_, said) = site.ended().await;
    let (session, key) = (session.secret(), key.secret());
    for secret in
        [PROMPT, OUTPUT, PASSWORD, "wrong-but-secret", "sk-beta-secret", UPSTREAM_KEY, &session, &key]
    {
        let logged = said.lines().find(|line| line.contains(secret));
        assert_eq!(logged, None, "{secret} is in the log");
        assert!(
            !kept.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()),
            "{secret} is in the database"
        );
    }
    assert!(said.contains("stopping"), "the log is there");
    assert!(kept.windows(5).any(|bytes| bytes == b"sales"), "the database is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn production_is_strict_and_says_which_limit_is_off() {
    let site = Setup::new().env("TOLLKEEPER_ENV", "production").env("LLM_RATE_PER_MINUTE", "0").start().await;
    let anyone = site.anyone();
    let login = json!({ "email": "root@example.com", "password": PASSWORD });
    let signed_in = anyone.post("/api/login", &login).await;
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-tollkeeper="), "{cookie}");
    for attribute in ["Secure", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(signed_in.headers.contains_key("strict-transport-security"));
    let metrics = anyone.get("/metrics").await;
    assert!(matches!(metrics.status, 401 | 403), "{}", metrics.status);
    let said = site.said();
    let warned: Vec<&str> = said.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warned.len(), 1, "{said}");
    let line: serde_json::Value = serde_json::from_str(warned[0]).unwrap();
    assert!(line.to_string().contains("LLM_RATE_PER_MINUTE"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_routes_say_so_and_the_probes_answer() {
    let site = Setup::new().env("LLM_BASE_URL", "").env("LLM_MODEL", "").start().await;
    assert_eq!(site.anyone().get("/healthz").await.status, 200);
    assert_eq!(site.anyone().get("/readyz").await.status, 200);
    let refused = site.key("eve@example.com", "acme").generate().await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(refused.headers.contains_key("retry-after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_failed_logins_lock_the_account_and_no_other() {
    let site = Site::start().await;
    let anyone = site.anyone();
    let wrong = json!({ "email": "eve@example.com", "password": "wrong-password-here" });
    for _ in 0..10 {
        assert_eq!(anyone.post("/api/login", &wrong).await.status, 401);
    }
    let right = json!({ "email": "eve@example.com", "password": PASSWORD });
    let locked = anyone.post("/api/login", &right).await;
    assert_eq!(locked.status, 429);
    assert!(locked.headers.contains_key("retry-after"));
    site.sign_in("bob@example.com").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_window_rows_are_pruned_and_what_counts_is_kept() {
    let mut site = Setup::new()
        .directory("[[platform]]\nid = \"beta\"\nbase_url = \"UPSTREAM\"\n[[platform.key]]\nlabel = \"main\"\nsecret = \"sk-beta\"\n\
                    [[platform.model]]\nid = \"m\"\nalias = \"default\"\nrpd = 100\n")
        .start()
        .await;
    let eve = site.key("eve@example.com", "acme");
    assert_eq!(eve.complete().await.status, 200);
    site.kill();
    site.execute("INSERT INTO rate_limit_usage (platform, model_id, key_id, kind, tokens, created_at_ms)
                  SELECT platform, model_id, key_id, kind, tokens, created_at_ms - 3 * 86400000 FROM rate_limit_usage")
        .await;
    site.boot();
    let root = site.sign_in("root@example.com").await;
    assert_eq!(root.get("/api/admin/providers").await.json()[0]["rpd"], json!({ "used": 1, "limit": 100 }));
    until("old rows are gone", async || {
        (site.number("SELECT COUNT(*) FROM rate_limit_usage").await == 2).then_some(())
    })
    .await;
}
