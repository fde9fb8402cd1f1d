//! How the engine went about each statement.

use sqlx::{AnyPool, AssertSqlSafe};

use super::capture::Capture;
use crate::store::DatabaseUrl;

/// A statement and the steps of its plan, one a line.
pub(super) struct Plans(Vec<(String, String)>);

/// Lets PostgreSQL tell, with each statement that it runs, the plan that it followed. For connections to come; only
/// a superuser may ask for it.
pub(super) async fn announce(url: &DatabaseUrl) {
    let DatabaseUrl::Postgres(address) = url else { return };
    let pool = AnyPool::connect(address).await.unwrap();
    let (_, name) = address.rsplit_once('/').unwrap();
    for setting in [
        "session_preload_libraries = 'auto_explain'",
        "auto_explain.log_min_duration = 0",
        "auto_explain.log_level = notice",
    ] {
        // The library gives the settings their names.
        sqlx::query("LOAD 'auto_explain'").persistent(false).execute(&pool).await.unwrap();
        let sql = format!("ALTER DATABASE {name} SET {setting}");
        sqlx::query(AssertSqlSafe(sql)).persistent(false).execute(&pool).await.unwrap();
    }
    pool.close().await;
}

impl Plans {
    /// Of all that was captured.
    pub(super) async fn of(url: &DatabaseUrl, capture: &Capture) -> Self {
        let DatabaseUrl::Sqlite(path) = url else {
            let plans = capture.notices();
            let plans: Vec<_> = plans
                .into_iter()
                .filter_map(|notice| {
                    let (statement, plan) = notice.split_once("Query Text:")?.1.split_once('\n')?;
                    Some((statement.to_owned(), plan.to_owned()))
                })
                .collect();
            assert!(!plans.is_empty(), "PostgreSQL tells no plans");
            return Plans(plans);
        };
        let pool = AnyPool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
        let mut plans = Vec::new();
        for statement in capture.statements() {
            if !["SELECT", "WITH", "UPDATE", "DELETE"].iter().any(|word| statement.starts_with(word)) {
                continue;
            }
            let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(sql).fetch_all(&pool).await.unwrap();
            let steps: Vec<String> = steps.into_iter().map(|(_, _, _, detail)| detail).collect();
            plans.push((statement, steps.join("\n")));
        }
        Plans(plans)
    }

    /// The statements that read one of these tables from one end to the other, each with its plan. One that follows an
    /// index, wants every row on its way and has a limit stops soon.
    pub(super) fn scans(&self, tables: &[&str]) -> Vec<String> {
        let scans = |(statement, plan): &&(String, String)| {
            let lines: Vec<&str> = plan.lines().collect();
            tables.iter().any(|table| {
                let alias = alias(statement, table);
                lines.iter().enumerate().any(|(at, line)| {
                    sqlite_scans(statement, line, &[table, alias])
                        || postgres_scans(line, &lines[at + 1..], table, plan.contains("Limit "))
                })
            })
        };
        self.0.iter().filter(scans).map(|(statement, plan)| format!("{statement}\n{plan}")).collect()
    }
}

/// What the statement calls the table, as SQLite's plan then does too.
fn alias<'s>(statement: &'s str, table: &'s str) -> &'s str {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let at = words.iter().position(|word| *word == table);
    at.and_then(|at| words.get(at + 1)).filter(|next| next.chars().all(char::is_lowercase)).unwrap_or(&table)
}

fn sqlite_scans(statement: &str, line: &str, names: &[&str]) -> bool {
    let Some(scanned) = line.trim().strip_prefix("SCAN ") else { return false };
    let scanned = scanned.split_whitespace().next();
    let soon =
        statement.contains(" LIMIT ") && !statement.replace("WHERE 1 = 1 ORDER", "ORDER").contains("WHERE");
    scanned.is_some_and(|scanned| names.contains(&scanned)) && !soon
}

/// `following` begins with the details of the step.
fn postgres_scans(line: &str, following: &[&str], table: &str, limited: bool) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let details = || following.iter().map(|line| line.trim()).take_while(|line| !line.contains("->"));
    let says = |what: &str| details().any(|detail| detail.starts_with(what));
    words.windows(2).any(|pair| pair[0] == "on" && pair[1] == table)
        && (line.contains("Seq Scan")
            || (line.contains("Index")
                && !line.contains("Bitmap")
                && !says("Index Cond")
                && (says("Filter") || !limited)))
}

#[test]
fn scans_are_told_from_searches() {
    let scans = |statement: &str, plan: &str| {
        !Plans(vec![(statement.to_owned(), plan.to_owned())]).scans(&["llm_usage"]).is_empty()
    };
    for (statement, plan) in [
        ("SELECT 1 FROM llm_usage u WHERE 1 = $1", "SCAN u"),
        ("SELECT 1 FROM llm_usage WHERE day > $1 LIMIT 1", "SCAN llm_usage USING INDEX llm_usage_by_day"),
        ("SELECT 1", "Limit (cost=0)\n  ->  Seq Scan on llm_usage u (cost=0)"),
        (
            "SELECT 1",
            "Limit (cost=0)\n  ->  Index Scan using k on llm_usage (cost=0)\n        Filter: (x > 1)",
        ),
        (
            "SELECT 1",
            "Aggregate (cost=0)\n  ->  Index Only Scan using k on llm_usage (cost=0)\n  ->  Index Scan using j on other\n        Index Cond: (id = 1)",
        ),
    ] {
        assert!(scans(statement, plan), "{plan}");
    }
    for (statement, plan) in [
        ("SELECT 1 FROM llm_usage u WHERE day = $1", "SEARCH u USING INDEX llm_usage_by_day (day=?)"),
        (
            "SELECT 1 FROM workspaces w JOIN llm_usage u ON u.workspace_id = w.id",
            "SCAN w\nSEARCH u USING PRIMARY KEY (workspace_id=?)",
        ),
        ("SELECT 1 FROM llm_usage ORDER BY day LIMIT 1", "SCAN llm_usage USING INDEX llm_usage_by_day"),
        ("SELECT 1", "Limit (cost=0)\n  ->  Index Scan using k on llm_usage (cost=0)"),
        ("SELECT 1", "Index Scan using k on llm_usage (cost=0)\n  Index Cond: (day = 1)\n  Filter: (x > 1)"),
        ("SELECT 1", "Seq Scan on llm_usage_totals (cost=0)"),
    ] {
        assert!(!scans(statement, plan), "{plan}");
    }
}
