//! The commands: beside a running server, and what their exit codes and errors say.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Setup, Site, stderr, within, words};

/// The contract's second, with another for a machine that does much else.
const SOON: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn the_server_sees_limits_and_keys_at_once() {
    let site = Site::start().await;
    let eve = site.key("eve@example.com", "acme");
    assert_eq!(eve.complete().await.status, 200);
    let done = site.cli(&["limits", "set", "acme", "--rate", "1", "--budget", "5"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let refused = eve.complete().await;
    assert_eq!((refused.status, refused.limit("ratelimit-policy", "budget", "q")), (429, Some(5)));
    assert!(site.cli(&["limits", "set", "acme", "--budget", "inherit"]).status.success());
    assert_eq!(eve.complete().await.json()["error"]["code"], "rate_limit_exceeded");

    let shown: Value = serde_json::from_slice(&site.cli(&["limits", "show", "--json"]).stdout).unwrap();
    let root = site.sign_in("root@example.com").await;
    let refusals_written = async || {
        let rows = root.get("/api/admin/workspaces").await.json();
        (rows[0]["today"]["refused_rate"] == 1 && rows[0]["today"]["refused_budget"] == 1).then_some(())
    };
    assert!(within(SOON, refusals_written).await);
    assert_eq!(shown[0]["rate"], json!({ "override": 1, "effective": 1, "from": "override" }));
    assert_eq!(
        shown[0]["budget"],
        json!({ "override": null, "effective": 2_000_000, "from": "environment" })
    );
    let again: Value =
        serde_json::from_slice(&site.cli(&["limits", "show", "acme", "--json"]).stdout).unwrap();
    assert_eq!(again[0], root.get("/api/admin/workspaces").await.json()[0]);
    let entries = root.get("/api/admin/audit?actor=cli&workspace=acme").await.json();
    let actions: Vec<&Value> = entries.as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions.iter().filter(|action| **action == "limits.set").count(), 2, "{entries}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_sees_what_apply_changed_within_a_second() {
    let site = Setup::new().env("LLM_RATE_PER_MINUTE", "0").start().await;
    let (eve, eves_key) = (site.sign_in("eve@example.com").await, site.key("eve@example.com", "acme"));
    site.upstream.next(words("From the one model", 1, 1));
    assert_eq!(eves_key.complete().await.status, 200);

    let file = site.toml.replace("[[dashboard]]\nid = \"revenue\"", "[[dashboard]]\nid = \"takings\"");
    let platform = format!(
        "{file}[[platform]]\nid = \"beta\"\nbase_url = \"{}\"\n[[platform.key]]\nlabel = \"main\"\nsecret = \"sk-beta\"\n\
         [[platform.model]]\nid = \"model-2\"\nalias = \"default\"\n",
        site.upstream.base_url()
    );
    site.apply(&platform);
    let seen = async || {
        eves_key.complete().await;
        let last = site.upstream.requests().last().unwrap().clone();
        (last.json()["model"] == "model-2" && last.header("authorization") == Some("Bearer sk-beta"))
            .then_some(())
    };
    assert!(within(SOON, seen).await, "the platform");
    assert_eq!(eve.get("/api/dashboards/revenue").await.status, 404);
    assert_eq!(eve.get("/api/dashboards/takings").await.status, 200);

    // A second time changes nothing and says so by saying nothing of a change.
    let before = site.tables(&["sessions", "api_keys", "rate_limit_usage", "llm_usage"]).await;
    assert_eq!(site.cli(&["apply", &site.file(&platform)]).status.code(), Some(0));
    let gone = platform.replace("email = \"eve@example.com\"", "email = \"new@example.com\"");
    assert_eq!(site.cli(&["apply", &site.file(&gone), "--dry-run"]).status.code(), Some(0));
    assert_eq!(site.tables(&["sessions", "api_keys", "rate_limit_usage", "llm_usage"]).await, before);

    // Whoever is dropped from the file is out, by session, key and password.
    site.apply(&gone);
    let out = async || {
        let answers = (eve.get("/api/me").await.status, eves_key.complete().await.status);
        (answers == (401, 401)).then_some(())
    };
    assert!(within(SOON, out).await, "the user");
    let again = json!({ "email": "eve@example.com", "password": crate::support::PASSWORD });
    assert_eq!(site.anyone().post("/api/login", &again).await.status, 401);
    site.sign_in("new@example.com").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_names_the_row_that_was_forged() {
    let site = Site::start().await;
    for rate in ["1", "2", "3"] {
        assert!(site.cli(&["limits", "set", "acme", "--rate", rate]).status.success());
    }
    let whole = site.cli(&["audit", "verify"]);
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));

    let row = site.number("SELECT MAX(id) - 1 FROM audit_log").await;
    let original = site.column(&format!("SELECT after FROM audit_log WHERE id = {row}")).await.remove(0);
    let broken = |site: &Site| {
        let verdict = site.cli(&["audit", "verify"]);
        assert_eq!(verdict.status.code(), Some(1), "{}", stderr(&verdict));
        stderr(&verdict)
    };
    // Whoever can write to the database can drop the triggers, too.
    site.execute("DROP TRIGGER audit_log_is_append_only_u; DROP TRIGGER audit_log_is_append_only_d").await;
    site.execute(&format!("UPDATE audit_log SET after = '{{\"rate_per_minute\":9}}' WHERE id = {row}")).await;
    assert!(broken(&site).contains(&format!("entry {row}")));
    site.execute(&format!("UPDATE audit_log SET after = '{original}' WHERE id = {row}")).await;
    assert!(site.cli(&["audit", "verify"]).status.success());
    site.execute(&format!("DELETE FROM audit_log WHERE id = {row}")).await;
    assert!(broken(&site).contains(&format!("entry {}", row + 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trail_is_append_only() {
    let site = Site::start().await;
    for statement in ["UPDATE audit_log SET actor = 'x'", "DELETE FROM audit_log"] {
        let refused = tokio::spawn({
            let database = site.database.clone();
            async move {
                use sqlx::ConnectOptions as _;
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database);
                sqlx::raw_sql(statement).execute(&mut options.connect().await.unwrap()).await
            }
        });
        assert!(refused.await.unwrap().is_err(), "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_usage_is_2_and_failed_work_is_1_each_with_a_line_that_names_the_cause() {
    let site = Site::start().await;
    let before = site.tables(&[]).await;
    let listening = site.anyone().base().trim_start_matches("http://").to_owned();
    let missing = site.file("") + ".missing";
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], i32, &'a str);
    let cases: [Case; 19] = [
        (&[("LLM_RATE_PER_MINUTE", "many")], &["serve"], 2, "LLM_RATE_PER_MINUTE"),
        (&[("LLM_DAILY_TOKEN_BUDGET", "1.5")], &["serve"], 2, "LLM_DAILY_TOKEN_BUDGET"),
        (&[("LLM_BUDGET_MODE", "soft")], &["serve"], 2, "LLM_BUDGET_MODE"),
        (&[("TOLLKEEPER_ADDR", "nowhere")], &["serve"], 2, "TOLLKEEPER_ADDR"),
        (&[("TOLLKEEPER_ENV", "staging")], &["serve"], 2, "TOLLKEEPER_ENV"),
        (&[("DATABASE_URL", "mysql://x/y")], &["migrate"], 2, "DATABASE_URL"),
        (&[("PROVIDER_DAILY_REQUEST_CAP_ALPHA", "-1")], &["serve"], 2, "PROVIDER_DAILY_REQUEST_CAP_ALPHA"),
        (&[("TOLLKEEPER_SECRET_KEY", "c2hvcnQ=")], &["serve"], 2, "TOLLKEEPER_SECRET_KEY"),
        (&[("RUST_LOG", "tollkeeper=loud")], &["serve"], 2, "RUST_LOG"),
        (&[("TOLLKEEPER_ADDR", &listening)], &["serve"], 1, "TOLLKEEPER_ADDR"),
        (&[("DATABASE_URL", "sqlite:///dev/null/x.db")], &["migrate"], 1, "/dev/null"),
        (&[], &["limits", "set", "acme", "--rate", "-1"], 2, "--rate"),
        (&[], &["limits", "set", "acme", "--budget", "9007199254740992"], 2, "--budget"),
        (&[], &["limits", "set", "acme"], 2, "--rate"),
        (&[], &["limits", "set", "nowhere", "--rate", "5"], 1, "nowhere"),
        (
            &[],
            &["key", "create", "--user", "no@example.com", "--workspace", "acme", "--name", "x"],
            1,
            "no@example.com",
        ),
        (
            &[],
            &["key", "create", "--user", "eve@example.com", "--workspace", "globex", "--name", "x"],
            1,
            "globex",
        ),
        (&[], &["apply", &missing], 2, "directory.toml.missing"),
        (&[], &["levitate"], 2, "levitate"),
    ];
    for (variables, arguments, code, named) in cases {
        let done = site.cli_with(variables, arguments);
        let told = stderr(&done);
        assert_eq!(done.status.code(), Some(code), "{variables:?} {arguments:?}: {told}");
        assert!(told.contains(named), "{variables:?} {arguments:?}: {told}");
        assert_eq!(told.trim_end().lines().count(), 1, "{variables:?} {arguments:?}: {told}");
    }
    assert_eq!(site.tables(&[]).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_file_names_its_line_and_changes_nothing() {
    let site = Site::start().await;
    let before = site.tables(&[]).await;
    for (faulty, line, named) in [
        ("[[workspace]]\nid = \"new\"\nname = \"New\"\ncolour = 1\n", 4, "colour"),
        ("[[workspace]]\nid = \"no blanks\"\nname = \"New\"\n", 2, "id"),
        ("[[workspace]]\nid = \"new\"\nname = \"New\"\nrate_per_minute = -1\n", 4, "rate_per_minute"),
        ("[[user]]\nemail = \"x@example.com\"\npassword = \"short\"\n", 3, "password"),
        ("[[dashboard]]\nid = \"d\"\nworkspace = \"acme\"\nsource = \"s\"\nname = \"D\"\n", 3, "acme"),
        ("[[workspace]\n", 1, ""),
    ] {
        let path = site.file(faulty);
        let done = site.cli(&["apply", &path]);
        let told = stderr(&done);
        assert_eq!(done.status.code(), Some(2), "{faulty}: {told}");
        assert!(told.contains(&format!("{path}:{line}: ")) && told.contains(named), "{faulty}: {told}");
    }
    assert_eq!(site.tables(&[]).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_the_file_is_asked_in_its_place_and_order() {
    let site = Setup::new()
        .directory(
            "[[platform]]\nid = \"beta\"\nbase_url = \"UPSTREAM\"\n[[platform.key]]\nlabel = \"main\"\nsecret = \"sk-beta\"\n\
             [[platform.model]]\nid = \"second\"\nalias = \"default\"\npriority = 2\n\
             [[platform.model]]\nid = \"first\"\nalias = \"default\"\npriority = 1\nrpm = 1\n",
        )
        .start()
        .await;
    let eve = site.key("eve@example.com", "acme");
    for _ in 0..3 {
        assert_eq!(eve.complete().await.status, 200);
    }
    let asked: Vec<Value> =
        site.upstream.requests().iter().map(|asked| asked.json()["model"].clone()).collect();
    assert_eq!(asked, ["first", "second", "second"]);
    let models = eve.get("/v1/models").await.json();
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "default"), "{models}");
}
