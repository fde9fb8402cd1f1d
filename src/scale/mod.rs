//! A test: whatever is asked of a large database reads no large table from one end to the other.
//!
//! The parts are run for real, and what they asked is taken from the driver ([`capture`]). A statement that
//! nobody asked here would not be judged, so the sources are searched too: each that reads a large table
//! has to have been among those that were run.

mod capture;
mod data;
mod plans;

use std::path::Path;
use std::time::Duration;

use crate::api;
use crate::api::testing::Client;
use crate::audit;
use crate::clock::ManualClock;
use crate::config::Config;
use crate::identity::testing::{PASSWORD, Site};
use crate::limits::Who;
use crate::model::UserId;
use crate::model::reports::{AuditQuery, WorkspaceFilter, WorkspaceSort, WorkspacesQuery};
use crate::reports::Scope;
use crate::services::Services;
use crate::store::Store;
use crate::store::testing::{Fresh, place};
use capture::Capture;
use plans::Plans;

/// The tables that grow with use. Lists of workspaces, users and settings may be read whole: 10,000 rows are few.
const LARGE: &[&str] = &["llm_usage", "llm_usage_by_user", "llm_refusals", "rate_limit_usage", "audit_log"];

/// Asked only after a commit whose answer was lost: one row by its whole key.
const ELSEWHERE: &[&str] = &["FROM rate_limit_usage WHERE replica = $1 AND seq = $2"];

#[tokio::test]
async fn nothing_that_is_asked_scans_a_large_table() {
    let capture = Capture::install();
    let (url, folder) = place().await;
    data::fill(&Store::open(&url).await.unwrap()).await;
    plans::announce(&url).await;
    // Opened again: what a connection tells of its plans is settled when it begins.
    let site = Site::over(Fresh { store: Store::open(&url).await.unwrap(), folder }, false);
    let admin = site.user("root@example.com", true, &[]).await;
    capture.clear();

    let config = Config::from_env(&std::collections::HashMap::new()).unwrap();
    let clock: std::sync::Arc<ManualClock> = site.clock.clone();
    let services = Services::start(config, site.store.clone(), clock, false).await.unwrap();
    ask_pages(&services, admin).await;
    ask_api(&services).await;
    audit::verify(&services.store).await.unwrap();
    // The pool's own work in the background: removing what is old, counting what another replica writes.
    site.run(
        "INSERT INTO rate_limit_usage (platform, model_id, key_id, kind, tokens, created_at_ms, replica, seq)
         VALUES ('p', 'm1', 'k1', 'tokens', 1, 1789898400000, 'other', 1)",
    )
    .await;
    for work in ["DELETE FROM rate_limit_usage", "AND seq > $2"] {
        until(|| capture.statements().iter().any(|sql| sql.contains(work))).await;
    }
    services.stopping.cancel();

    let asked = capture.statements();
    let missing: Vec<String> = reads_in_the_sources()
        .into_iter()
        .filter(|read| !ELSEWHERE.contains(&read.as_str()))
        .filter(|read| !asked.iter().any(|statement| statement.contains(read.as_str())))
        .collect();
    assert!(missing.is_empty(), "not asked here, so nobody knows how it reads: {missing:#?}");
    let scans = Plans::of(&url, &capture).await.scans(LARGE);
    assert!(scans.is_empty(), "{}", scans.join("\n\n"));
}

async fn ask_pages(services: &Services, admin: UserId) {
    let sorts = [
        WorkspaceSort::Share,
        WorkspaceSort::Name,
        WorkspaceSort::Tokens,
        WorkspaceSort::Requests,
        WorkspaceSort::Refused,
    ];
    let filters =
        [WorkspaceFilter::All, WorkspaceFilter::Near, WorkspaceFilter::Overridden, WorkspaceFilter::Refusing];
    for sort in sorts {
        for filter in filters {
            for (search, page) in [("", 1), ("space 77", 2)] {
                let query = WorkspacesQuery { search: search.into(), sort, filter, page };
                services.reports.workspaces_page(&Scope::All, &query).await.unwrap();
            }
        }
    }
    let own = Scope::Only(vec!["w7".into(), "w9".into()]);
    services.reports.workspaces_page(&own, &WorkspacesQuery::default()).await.unwrap();
    services.reports.workspace(&"w7".into()).await.unwrap();
    services.limiter.peek(&Who { workspace: "w7".into(), user: admin }).await.unwrap();

    let old = || ("2026-03-01".to_owned(), "2026-03-02".to_owned());
    for mask in 0..16 {
        let given = |bit: i32, text: &str| if mask & bit == 0 { String::new() } else { text.to_owned() };
        let (from, to) = if mask & 4 == 0 { Default::default() } else { old() };
        let query = AuditQuery {
            workspace: given(1, "w7"),
            actor: given(2, "user7@example.com"),
            from,
            to,
            before: (mask & 8 != 0).then_some(90_000),
            after: None,
        };
        services.reports.audit_page(&query).await.unwrap();
        services
            .reports
            .audit_page(&AuditQuery { before: None, after: Some(90_000), ..query })
            .await
            .unwrap();
    }
}

/// Every route that only reads, as its own description lists them, and those that take conditions with them.
async fn ask_api(services: &Services) {
    let mut client = Client::of(api::with_layers(api::router(services), services));
    assert_eq!(client.login("root@example.com", PASSWORD).await.status, 204);
    let description = client.get("/api/openapi.json", &[]).await.json();
    let paths = description["paths"].as_object().unwrap().iter();
    let mut paths: Vec<String> = paths
        .filter(|(_, operations)| operations.get("get").is_some())
        .map(|(path, _)| path.replace("{id}", "w7").replace("{model}", "any"))
        .collect();
    assert!(paths.iter().any(|path| path == "/metrics"), "{paths:?}");
    for query in ["workspace=w7", "from=2026-03-01&to=2026-03-02", "workspace=w7&from=2025-01-01"] {
        paths.push(format!("/api/admin/usage?{query}"));
        paths.push(format!("/api/admin/audit?{query}"));
    }
    for path in &paths {
        let answer = client.get(path, &[]).await;
        assert!(answer.status < 500, "{path}: {}", answer.body);
    }
    let answer = client.put("/api/admin/workspaces/w7/limits", r#"{"rate_per_minute":3}"#, &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// The lines that read a large table, from its name on to the line's or the text's end.
fn reads_in_the_sources() -> Vec<String> {
    let mut reads = Vec::new();
    search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut reads);
    assert!(reads.len() > 5, "{reads:?}");
    reads
}

fn search(folder: &Path, reads: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name.contains("test") || name == "scale" {
            continue;
        }
        if path.is_dir() {
            search(&path, reads);
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("\nmod tests {").next().unwrap();
            reads.extend(code.lines().filter_map(read));
        }
    }
}

fn read(line: &str) -> Option<String> {
    LARGE.iter().find_map(|table| {
        let (at, _) = ["FROM ", "JOIN "].iter().find_map(|word| {
            let wanted = format!("{word}{table}");
            line.match_indices(&wanted).find(|(at, _)| {
                let next = line[at + wanted.len()..].chars().next();
                next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
            })
        })?;
        let read = line[at..].split(['"', '{']).next()?;
        Some(read.trim().to_owned())
    })
}

async fn until(there: impl Fn() -> bool) {
    let patience = tokio::time::timeout(Duration::from_mins(1), async {
        while !there() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    patience.await.expect("it comes within a minute");
}
