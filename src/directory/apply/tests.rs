use super::*;
use crate::clock::ManualClock;
use crate::store::testing::{Dump, Fresh, dump, fresh};

fn secret_key() -> SecretKey {
    SecretKey::from_base64("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").unwrap()
}

pub(super) struct Site {
    store: Store,
    clock: std::sync::Arc<ManualClock>,
    _folder: tempfile::TempDir,
}

impl Site {
    pub(super) async fn new() -> Self {
        let Fresh { store, folder } = fresh().await;
        Site { store, clock: ManualClock::new(Timestamp(1_790_000_000_000)), _folder: folder }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) async fn apply(&self, text: &str) -> Result<Report, ApplyError> {
        self.run(text, false).await
    }

    pub(super) async fn run(&self, text: &str, dry_run: bool) -> Result<Report, ApplyError> {
        self.clock.advance_ms(1_000);
        let file = File::from_bytes("d.toml", text.as_bytes(), &|_| None).unwrap();
        apply(&self.store, &*self.clock, &secret_key(), &file, dry_run).await
    }

    async fn sql(&self, statement: &'static str) {
        let mut tx = self.store.begin().await.unwrap();
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn number(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(self.store.read()).await.unwrap()
    }

    /// Every row of every table.
    pub(super) async fn dump(&self) -> Dump {
        dump(&self.store).await
    }

    /// All that a file decides: without usage, trail, ids that are drawn and who was removed.
    pub(super) async fn state(&self) -> Vec<Vec<String>> {
        let mut state = Vec::new();
        for query in [
            "SELECT id || name || managed FROM workspaces ORDER BY 1",
            "SELECT workspace_id || COALESCE(rate_per_minute, -1) || ',' || COALESCE(daily_token_budget, -1)
             FROM workspace_limits WHERE COALESCE(rate_per_minute, daily_token_budget) IS NOT NULL ORDER BY 1",
            "SELECT email || admin || managed FROM users WHERE removed_at_ms IS NULL ORDER BY 1",
            "SELECT email || workspace_id || role || memberships.managed
             FROM memberships JOIN users ON users.id = user_id ORDER BY 1",
            "SELECT id || workspace_id || name || kind || columns || COALESCE(inline_rows, '') || managed
             FROM sources ORDER BY 1",
            "SELECT id || workspace_id || source_id || name || managed FROM dashboards ORDER BY 1",
            "SELECT id || base_url || position || managed FROM platforms ORDER BY 1",
            "SELECT platform_id || label || position || managed FROM platform_keys ORDER BY 1",
            "SELECT platform_id || model_id || alias || COALESCE(CAST(rpm AS TEXT), '') || priority || position || managed
             FROM platform_models ORDER BY 1",
        ] {
            state.push(sqlx::query_scalar(query).fetch_all(self.store.read()).await.unwrap());
        }
        let sealed: Vec<(String, String, String, String)> = sqlx::query_as(
            "SELECT platform_id, label, id, sealed FROM platform_keys ORDER BY platform_id, label",
        )
        .fetch_all(self.store.read())
        .await
        .unwrap();
        let open = |(platform, label, id, sealed): (String, String, String, String)| {
            format!("{platform} {label} {}", secret_key().open(&id, &sealed).unwrap())
        };
        state.push(sealed.into_iter().map(open).collect());
        state
    }

    async fn actions(&self) -> Vec<(String, Value, Value)> {
        let entries =
            audit::list(&self.store, &audit::Query { limit: 200, ..Default::default() }).await.unwrap();
        entries.into_iter().rev().map(|e| (e.action, e.before, e.after)).collect()
    }
}

const A: &str = r#"
[[workspace]]
id = "acme"
name = "Acme"
rate_per_minute = 9
daily_token_budget = 1000
[[workspace]]
id = "globex"
name = "Globex"
[[user]]
email = "ada@example.com"
password = "a long enough password"
memberships = [{ workspace = "acme", role = "source-admin" }, { workspace = "globex", role = "viewer" }]
[[user]]
email = "root@example.com"
password = "another long password"
admin = true
[[source]]
id = "sales"
workspace = "acme"
name = "Sales"
kind = "csv"
definition = { columns = ["day", "amount"], rows = [["2026-01-01", 5]] }
[[source]]
id = "parts"
workspace = "globex"
name = "Parts"
kind = "json"
definition = { columns = ["part"] }
[[dashboard]]
id = "revenue"
workspace = "acme"
source = "sales"
name = "Revenue"
[[platform]]
id = "alpha"
base_url = "http://localhost:1/v1"
[[platform.key]]
label = "main"
secret = "sk-first"
[[platform.key]]
label = "spare"
secret = "sk-spare"
[[platform.model]]
id = "a-1"
alias = "default"
rpm = 20
[[platform]]
id = "beta"
base_url = "http://localhost:2/v1"
"#;

/// Other names, limits, roles, password, secret and order; globex, the parts and the root are gone.
const B: &str = r#"
[[workspace]]
id = "acme"
name = "Acme Inc"
daily_token_budget = 0
[[workspace]]
id = "hooli"
name = "Hooli"
rate_per_minute = 3
[[user]]
email = "ada@example.com"
password = "a quite different password"
admin = true
memberships = [{ workspace = "acme", role = "editor" }, { workspace = "hooli", role = "viewer" }]
[[source]]
id = "sales"
workspace = "hooli"
name = "Sales"
kind = "csv"
definition = { columns = ["day", "amount"], rows = [["2026-01-01", 6]] }
[[dashboard]]
id = "revenue"
workspace = "hooli"
source = "sales"
name = "Revenue"
[[platform]]
id = "beta"
base_url = "http://localhost:3/v1"
[[platform.key]]
label = "main"
secret = "sk-beta"
[[platform]]
id = "alpha"
base_url = "http://localhost:1/v1"
[[platform.key]]
label = "main"
secret = "sk-second"
[[platform.model]]
id = "a-1"
alias = "small"
"#;

#[tokio::test]
async fn a_second_apply_touches_nothing_and_a_dry_run_neither() {
    let site = Site::new().await;
    let empty = site.dump().await;
    let rehearsal = site.run(A, true).await.unwrap();
    assert_eq!(site.dump().await, empty);
    let report = site.apply(A).await.unwrap();
    assert_eq!(report, rehearsal, "a dry run tells what the run then does");
    assert!(report.changes.contains(&"+ workspace acme".into()), "{report}");
    assert!(
        report.changes.contains(
            &"~ workspace acme: rate_per_minute inherit → 9, daily_token_budget inherit → 1000".into()
        ),
        "{report}"
    );
    assert_eq!(site.number("SELECT COUNT(*) FROM workspace_limits").await, 1, "no row that says nothing");

    let first = site.dump().await;
    let report = site.apply(A).await.unwrap();
    assert_eq!(site.dump().await, first);
    assert_eq!(report.to_string(), "nothing to change\n");

    let rehearsal = site.run(B, true).await.unwrap();
    assert_eq!(site.dump().await, first);
    assert_eq!(site.apply(B).await.unwrap(), rehearsal);
}

#[tokio::test]
async fn one_file_after_another_leaves_what_the_other_alone_makes() {
    let (both, alone) = (Site::new().await, Site::new().await);
    both.apply(A).await.unwrap();
    both.apply(B).await.unwrap();
    alone.apply(B).await.unwrap();
    assert!(both.state().await.iter().all(|rows| !rows.is_empty()));
    assert_eq!(both.state().await, alone.state().await);
    let hash: String = sqlx::query_scalar("SELECT password_hash FROM users WHERE email = 'ada@example.com'")
        .fetch_one(both.store.read())
        .await
        .unwrap();
    let passwords = crate::identity::Passwords::default();
    assert!(passwords.verify("a quite different password".into(), Some(hash)).await.unwrap());
    assert!(matches!(audit::verify(&both.store).await.unwrap(), audit::Verdict::Whole { .. }));
}

#[tokio::test]
async fn the_trail_has_every_change_and_no_secret() {
    let site = Site::new().await;
    site.apply(A).await.unwrap();
    site.apply(B).await.unwrap();
    let trail = site.actions().await;
    let of = |wanted: &str| trail.iter().filter(|(action, ..)| action == wanted).collect::<Vec<_>>();
    let limits = |rate, budget| serde_json::json!({ "rate_per_minute": rate, "daily_token_budget": budget });
    let sets: Vec<_> = of("limits.set").iter().map(|(_, b, a)| (b.clone(), a.clone())).collect();
    let none: Option<i64> = None;
    assert_eq!(
        sets,
        [
            (limits(none, none), limits(Some(9), Some(1000))),
            (limits(Some(9), Some(1000)), limits(none, Some(0))),
            (limits(none, none), limits(Some(3), none)),
        ]
    );
    assert_eq!(of("user.change")[0].2["password"], "changed");
    assert_eq!(of("user.remove").len(), 1);
    assert_eq!(of("membership.change")[0].2["role"], "editor");
    assert_eq!(of("platform-key.change")[0].2["secret"], "changed");
    assert_eq!(of("source.change")[0].2["content"], "changed");
    for action in
        ["workspace.add", "workspace.remove", "source.remove", "platform-key.remove", "platform.change"]
    {
        assert!(!of(action).is_empty(), "{action}");
    }
    let all = format!("{trail:?}");
    for secret in ["long", "different", "argon2", "sk-", "2026-01-01"] {
        assert!(!all.contains(secret), "{secret} is in the trail");
    }
    assert!(site.number("SELECT version FROM pool_version").await == 3);
    site.apply(&B.replace("Acme Inc", "Acme")).await.unwrap();
    assert_eq!(site.number("SELECT version FROM pool_version").await, 3, "the pool did not change");
}

#[tokio::test]
async fn who_is_dropped_loses_every_way_in_and_may_come_back() {
    let site = Site::new().await;
    site.apply(A).await.unwrap();
    site.sql("INSERT INTO sessions SELECT 'h', id, '{}', 0, 0, 9 FROM users WHERE email = 'ada@example.com'")
        .await;
    site.sql(
        "INSERT INTO api_keys (id, hash, hint, user_id, workspace_id, name, created_at_ms)
         SELECT 'k', 'h', 'tk_', id, 'acme', 'n', 0 FROM users WHERE email = 'ada@example.com'",
    )
    .await;
    site.sql("INSERT INTO llm_usage_by_user SELECT 'acme', '2026-01-01', id, 1, 1, 1 FROM users").await;
    let id = "SELECT id FROM users WHERE email = 'ada@example.com'";
    let before: String = sqlx::query_scalar(id).fetch_one(site.store.read()).await.unwrap();

    let start = A.find("[[user]]\nemail = \"ada").unwrap();
    let end = A.find("[[user]]\nemail = \"root").unwrap();
    let without = format!("{}{}", &A[..start], &A[end..]);
    let report = site.apply(&without).await.unwrap();
    assert!(report.changes.contains(&"- user ada@example.com".into()), "{report}");
    assert_eq!(site.number("SELECT COUNT(*) FROM sessions").await, 0);
    assert_eq!(site.number("SELECT COUNT(*) FROM memberships").await, 0);
    assert_eq!(site.number("SELECT COUNT(*) FROM api_keys WHERE revoked_at_ms IS NULL").await, 0);
    assert_eq!(site.number("SELECT COUNT(*) FROM users WHERE removed_at_ms IS NOT NULL").await, 1);
    assert_eq!(site.number("SELECT COUNT(*) FROM llm_usage_by_user").await, 2);
    let dump = site.dump().await;
    assert_eq!(site.apply(&without).await.unwrap().to_string(), "nothing to change\n");
    assert_eq!(site.dump().await, dump);

    site.apply(A).await.unwrap();
    let after: String = sqlx::query_scalar(id).fetch_one(site.store.read()).await.unwrap();
    assert_eq!(after, before, "the same person as before");
    assert_eq!(site.number("SELECT COUNT(*) FROM users WHERE removed_at_ms IS NOT NULL").await, 0);
    assert_eq!(site.number("SELECT COUNT(*) FROM memberships").await, 2);
    assert_eq!(
        site.number("SELECT COUNT(*) FROM api_keys WHERE revoked_at_ms IS NULL").await,
        0,
        "a revoked key stays revoked"
    );
}

#[tokio::test]
async fn what_was_made_elsewhere_is_left_listed_referred_to_and_adopted() {
    let site = Site::new().await;
    for statement in [
        "INSERT INTO workspaces VALUES ('own', 'Own', 0, 0)",
        "INSERT INTO workspace_limits (workspace_id, rate_per_minute) VALUES ('own', 7), ('acme', 8)",
        "INSERT INTO users (id, email, admin, created_at_ms) VALUES ('u1', 'own@example.com', 0, 0)",
        "INSERT INTO memberships VALUES ('u1', 'own', 'viewer', 0)",
        "INSERT INTO sources VALUES ('mine', 'own', 'Mine', 'csv', '[{\"name\":\"a\",\"type\":\"text\"}]', NULL, 0, 0)",
    ] {
        site.sql(statement).await;
    }
    let more = "[[dashboard]]\nid = \"d\"\nworkspace = \"own\"\nsource = \"mine\"\nname = \"D\"\n";
    let report = site.apply(&format!("{A}{more}")).await.unwrap();
    assert_eq!(
        report.unmanaged,
        ["= unmanaged source mine", "= unmanaged user own@example.com", "= unmanaged workspace own"]
    );
    assert_eq!(
        site.number("SELECT rate_per_minute FROM workspace_limits WHERE workspace_id = 'own'").await,
        7
    );

    let adopting = format!(
        "{A}{more}[[workspace]]\nid = \"own\"\nname = \"Own\"\n[[user]]\nemail = \"own@example.com\"\n\
         password = \"long enough for all\"\n"
    );
    let report = site.apply(&adopting).await.unwrap();
    assert_eq!(
        report.changes,
        [
            "~ workspace own: adopted",
            "~ workspace own: rate_per_minute 7 → inherit",
            "~ user own@example.com: adopted, password changed",
        ]
    );
    assert_eq!(
        report.unmanaged,
        ["= unmanaged membership of own@example.com in own", "= unmanaged source mine"]
    );
    // Now that a file made it, dropping it removes it; but not while others' records are in there.
    let error = site.apply(A).await.unwrap_err();
    assert!(
        matches!(&error, ApplyError::Refused(said) if said.contains("\"own\"") && said.contains("\"mine\""))
    );
    site.sql("DELETE FROM dashboards WHERE id = 'd'").await;
    site.sql("DELETE FROM sources WHERE id = 'mine'").await;
    site.apply(A).await.unwrap();
    assert_eq!(site.number("SELECT COUNT(*) FROM workspaces WHERE id = 'own'").await, 0);
    assert_eq!(site.number("SELECT COUNT(*) FROM workspace_limits WHERE workspace_id = 'own'").await, 0);
}

#[tokio::test]
async fn what_others_made_keeps_its_ground() {
    let site = Site::new().await;
    site.apply(A).await.unwrap();
    site.sql("INSERT INTO dashboards VALUES ('theirs', 'acme', 'sales', 'T', NULL, 0, 0)").await;
    site.sql("INSERT INTO platform_keys VALUES ('k', 'beta', 'theirs', 'x', 1, 0, 0)").await;
    let dump = site.dump().await;
    let moved = A
        .replace("workspace = \"acme\"\nsource", "workspace = \"globex\"\nsource")
        .replace("id = \"sales\"\nworkspace = \"acme\"", "id = \"sales\"\nworkspace = \"globex\"");
    let without_beta = A.split("[[platform]]\nid = \"beta\"").next().unwrap();
    let without_sources = &A[..A.find("[[source]]").unwrap()];
    for (text, word) in
        [(moved.as_str(), "moved"), (without_beta, "\"theirs\""), (without_sources, "removed")]
    {
        let error = site.apply(text).await.unwrap_err();
        assert!(matches!(&error, ApplyError::Refused(said) if said.contains(word)), "{error}");
        assert_eq!(site.dump().await, dump, "nothing was changed");
    }
}

#[tokio::test]
async fn references_are_checked_with_their_line() {
    let site = Site::new().await;
    site.apply(A).await.unwrap();
    site.sql("INSERT INTO workspaces VALUES ('own', 'Own', 0, 0)").await;
    let dump = site.dump().await;
    let line = |part: &str| A[..A.find(part).unwrap()].matches('\n').count() + 1;
    for (part, with, offset, word) in [
        ("id = \"sales\"\nworkspace = \"acme\"", "id = \"sales\"\nworkspace = \"atlantis\"", 1, "atlantis"),
        ("source = \"sales\"", "source = \"nowhere\"", 0, "nowhere"),
        ("source = \"sales\"", "source = \"parts\"", 0, "globex"),
        ("{ workspace = \"globex\", role", "{ workspace = \"atlantis\", role", 0, "atlantis"),
        // What a file made and this one drops is about to go.
        ("[[workspace]]\nid = \"globex\"\nname = \"Globex\"\n", "\n\n\n", 6, "globex"),
    ] {
        let error = site.apply(&A.replacen(part, with, 1)).await.unwrap_err();
        let ApplyError::Form(said) = &error else { panic!("{error}") };
        assert!(said.starts_with(&format!("d.toml:{}: ", line(part) + offset)), "{said}");
        assert!(said.contains(word), "{said}");
        assert_eq!(site.dump().await, dump);
    }
    site.apply(&A.replace("workspace = \"globex\", role", "workspace = \"own\", role")).await.unwrap();
}

#[tokio::test]
async fn another_source_clears_a_spec_that_does_not_fit_it() {
    let site = Site::new().await;
    site.apply(A).await.unwrap();
    site.sql(
        "UPDATE dashboards SET spec = '{\"title\":\"T\",\"widgets\":[{\"id\":\"w\",\"kind\":\"metric\",\"title\":\"W\",
         \"query\":{\"column\":\"amount\"}}]}'",
    )
    .await;
    site.apply(&A.replace("name = \"Revenue\"", "name = \"R\"")).await.unwrap();
    assert_eq!(site.number("SELECT COUNT(*) FROM dashboards WHERE spec IS NOT NULL").await, 1);
    let other = A.replace(
        "id = \"revenue\"\nworkspace = \"acme\"\nsource = \"sales\"",
        "id = \"revenue\"\nworkspace = \"globex\"\nsource = \"parts\"",
    );
    let report = site.apply(&other).await.unwrap();
    assert!(report.to_string().contains("spec cleared"), "{report}");
    assert_eq!(site.number("SELECT COUNT(*) FROM dashboards WHERE spec IS NOT NULL").await, 0);
}

#[tokio::test]
async fn waits_for_another_writer() {
    let site = Site::new().await;
    let other = site.store.begin().await.unwrap();
    let file = File::from_bytes("d.toml", A.as_bytes(), &|_| None).unwrap();
    let key = secret_key();
    let applying = apply(&site.store, &*site.clock, &key, &file, false);
    let (report, done) = tokio::join!(applying, async {
        tokio::task::yield_now().await;
        other.rollback().await
    });
    done.unwrap();
    assert!(!report.unwrap().changes.is_empty());
}
