//! Demo data: three workspaces with people of every role, sources, dashboards and a month of usage, so
//! that each page has something to see. Made once, on a database that nobody uses yet.

mod content;
mod history;

use serde_json::json;

use crate::audit::{self, Actor, Change};
use crate::clock::Clock;
use crate::identity::{Passwords, new_user_id};
use crate::model::{Error, Role, UserId};
use crate::store::{Store, Tx, to_i64};

/// Everybody's password. It is no secret: demo data is for looking at, on a machine of one's own.
pub const DEMO_PASSWORD: &str = "tollkeeper-demo";

/// How to sign in, for printing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoLogin {
    pub email: &'static str,
    /// What there is to see for them.
    pub role: &'static str,
    pub password: &'static str,
}

struct Workspace {
    id: &'static str,
    name: &'static str,
    /// Requests a minute and tokens a day; none inherits.
    limits: Option<(u64, u64)>,
}

const WORKSPACES: [Workspace; 3] = [
    Workspace { id: "meadow", name: "Meadow Foods", limits: None },
    Workspace { id: "harbour", name: "Harbour Logistics", limits: Some((60, 5_000_000)) },
    Workspace { id: "lantern", name: "Lantern Studio", limits: Some((5, history::SMALL_BUDGET)) },
];

struct Person {
    login: DemoLogin,
    admin: bool,
    memberships: &'static [(&'static str, Role)],
}

const fn person(
    email: &'static str,
    role: &'static str,
    admin: bool,
    memberships: &'static [(&'static str, Role)],
) -> Person {
    Person { login: DemoLogin { email, role, password: DEMO_PASSWORD }, admin, memberships }
}

const ADMIN: &str = "admin@demo.local";

const PEOPLE: [Person; 6] = [
    person(ADMIN, "platform admin", true, &[("meadow", Role::Editor)]),
    person("ada@demo.local", "source-admin of Meadow Foods", false, &[("meadow", Role::SourceAdmin)]),
    person(
        "eve@demo.local",
        "editor of Meadow Foods and Harbour Logistics",
        false,
        &[("harbour", Role::Editor), ("meadow", Role::Editor)],
    ),
    person("vic@demo.local", "viewer of Meadow Foods", false, &[("meadow", Role::Viewer)]),
    person("hal@demo.local", "source-admin of Harbour Logistics", false, &[("harbour", Role::SourceAdmin)]),
    person(
        "lou@demo.local",
        "source-admin of Lantern Studio, whose budget is nearly spent",
        false,
        &[("lantern", Role::SourceAdmin)],
    ),
];

/// Adds the demo data to a database without users and workspaces, and says how to sign in; also where
/// it was added before. None where the database is somebody's own.
pub async fn make_demo(store: &Store, clock: &dyn Clock) -> Result<Option<Vec<DemoLogin>>, Error> {
    let in_use =
        "SELECT COUNT(*) FROM (SELECT id FROM users UNION ALL SELECT id FROM workspaces LIMIT 1) AS any_row";
    if sqlx::query_scalar::<_, i64>(in_use).fetch_one(store.read()).await? > 0 {
        return Ok(is_demo(store).await?.then(logins));
    }
    let hash = Passwords::default().hash(DEMO_PASSWORD.into()).await?;

    let mut tx = store.begin().await?;
    // Another server may have been faster.
    if sqlx::query_scalar::<_, i64>(in_use).fetch_one(&mut *tx).await? > 0 {
        tx.rollback().await?;
        return Ok(is_demo(store).await?.then(logins));
    }
    let now = clock.now();
    add_workspaces(&mut tx, now.ms()).await?;
    let people = add_people(&mut tx, &hash, now.ms()).await?;
    let (sources, dashboards) = content::add(&mut tx, now).await?;
    history::add(&mut tx, now, &people).await?;
    let after = json!({
        "workspaces": WORKSPACES.map(|workspace| workspace.id), "users": PEOPLE.len(),
        "sources": sources, "dashboards": dashboards,
    });
    let change = Change {
        actor: &Actor::System,
        action: "demo.create",
        workspace: None,
        before: None,
        after: Some(after),
    };
    audit::append(&mut tx, now, change).await?;
    tx.commit().await?;
    Ok(Some(logins()))
}

fn logins() -> Vec<DemoLogin> {
    PEOPLE.iter().map(|person| person.login).collect()
}

/// Whether the demo's admin is there and still has the demo's password.
async fn is_demo(store: &Store) -> Result<bool, Error> {
    let hash: Option<Option<String>> =
        sqlx::query_scalar("SELECT password_hash FROM users WHERE email = $1 AND removed_at_ms IS NULL")
            .bind(ADMIN)
            .fetch_optional(store.read())
            .await?;
    Passwords::default().verify(DEMO_PASSWORD.into(), hash.flatten()).await
}

async fn add_workspaces(tx: &mut Tx, now_ms: i64) -> Result<(), sqlx::Error> {
    for workspace in &WORKSPACES {
        sqlx::query("INSERT INTO workspaces (id, name, created_at_ms) VALUES ($1, $2, $3)")
            .bind(workspace.id)
            .bind(workspace.name)
            .bind(now_ms)
            .execute(&mut **tx)
            .await?;
        let Some((rate, budget)) = workspace.limits else { continue };
        sqlx::query(
            "INSERT INTO workspace_limits (workspace_id, rate_per_minute, daily_token_budget) VALUES ($1, $2, $3)",
        )
        .bind(workspace.id)
        .bind(to_i64(rate))
        .bind(to_i64(budget))
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// A person's id, by e-mail address.
type Ids = Vec<(&'static str, UserId)>;

async fn add_people(tx: &mut Tx, hash: &str, now_ms: i64) -> Result<Ids, sqlx::Error> {
    let mut ids = Vec::new();
    for person in &PEOPLE {
        let id = new_user_id();
        sqlx::query(
            "INSERT INTO users (id, email, password_hash, admin, created_at_ms) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(id.as_str().to_owned())
        .bind(person.login.email)
        .bind(hash)
        .bind(i64::from(person.admin))
        .bind(now_ms)
        .execute(&mut **tx)
        .await?;
        for (workspace, role) in person.memberships {
            sqlx::query("INSERT INTO memberships (user_id, workspace_id, role) VALUES ($1, $2, $3)")
                .bind(id.as_str().to_owned())
                .bind(*workspace)
                .bind(role.as_str())
                .execute(&mut **tx)
                .await?;
        }
        ids.push((person.login.email, id));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::model::dashboard::{Column, Spec};
    use crate::model::{Day, Timestamp};
    use crate::store::testing::{Fresh, fresh};

    async fn demo(now: Timestamp) -> (Store, tempfile::TempDir) {
        let Fresh { store, folder } = fresh().await;
        let logins = make_demo(&store, &*ManualClock::new(now)).await.unwrap().unwrap();
        assert_eq!(logins.len(), PEOPLE.len());
        (store, folder)
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    async fn number(store: &Store, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(store.read()).await.unwrap()
    }

    #[tokio::test]
    async fn is_made_once_and_never_among_others_records() {
        let (store, _folder) = demo(at("2026-09-23T15:00:00Z")).await;
        let before = number(&store, "SELECT CAST(SUM(input_tokens) AS BIGINT) FROM llm_usage").await;
        let again = make_demo(&store, &*ManualClock::new(at("2026-09-24T15:00:00Z"))).await.unwrap();
        assert!(again.is_some(), "a second start says how to sign in, too");
        assert_eq!(number(&store, "SELECT CAST(SUM(input_tokens) AS BIGINT) FROM llm_usage").await, before);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM audit_log WHERE action = 'demo.create'").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM users WHERE managed = 1").await, 0);

        let Fresh { store: own, folder: _own_folder } = fresh().await;
        let mut tx = own.begin().await.unwrap();
        sqlx::query("INSERT INTO users (id, email, created_at_ms) VALUES ('u', 'a@b', 0)")
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(make_demo(&own, &*ManualClock::new(at("2026-09-23T15:00:00Z"))).await.unwrap(), None);
        assert_eq!(number(&own, "SELECT COUNT(*) FROM workspaces").await, 0);
    }

    #[tokio::test]
    async fn the_history_is_a_month_that_adds_up() {
        for now in
            ["2026-09-23T15:00:00Z", "2026-09-23T00:00:01Z", "2026-09-27T09:00:00Z", "2026-03-01T23:59:59Z"]
        {
            let now = at(now);
            let (store, _folder) = demo(now).await;
            let days: Vec<String> = sqlx::query_scalar(
                "SELECT DISTINCT CAST(day AS TEXT) FROM llm_usage WHERE workspace_id = 'meadow' ORDER BY 1",
            )
            .fetch_all(store.read())
            .await
            .unwrap();
            assert_eq!(days.len(), 30);
            assert_eq!(Day::parse(&days[29]), Some(now.day()));
            let sums = |table| {
                format!(
                    "SELECT workspace_id, CAST(day AS TEXT), CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT),
                     CAST(SUM(requests) AS BIGINT) FROM {table} GROUP BY workspace_id, day ORDER BY 1, 2"
                )
            };
            let mut all = Vec::new();
            for table in ["llm_usage", "llm_usage_by_user"] {
                let rows: Vec<(String, String, i64, i64, i64)> =
                    sqlx::query_as(sqlx::AssertSqlSafe(sums(table))).fetch_all(store.read()).await.unwrap();
                all.push(rows);
            }
            assert_eq!(all[0], all[1], "what the users used is what the workspace used");
            let today = now.day().ymd();
            for (workspace, day, input, output, requests) in &all[0] {
                assert!(*requests > 0 && input > output && *output > 0, "{workspace} {day}");
                if workspace == "lantern" && *day == today {
                    let budget = to_i64(history::SMALL_BUDGET);
                    let used = input + output;
                    assert!(used > budget * 90 / 100 && used < budget, "nearly spent: {used} of {budget}");
                }
            }
            for kind in ["rate", "budget"] {
                let refused: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM llm_refusals WHERE kind = $1")
                    .bind(kind)
                    .fetch_one(store.read())
                    .await
                    .unwrap();
                assert!(refused > 3, "{kind}");
            }
        }
    }

    #[tokio::test]
    async fn specs_fit_their_sources_and_rows_their_columns() {
        let (store, _folder) = demo(at("2026-09-23T15:00:00Z")).await;
        let rows: Vec<(String, String, Option<String>)> = sqlx::query_as(
            "SELECT spec, sources.columns, sources.inline_rows FROM dashboards JOIN sources ON sources.id = source_id",
        )
        .fetch_all(store.read())
        .await
        .unwrap();
        assert!(rows.len() >= 3);
        for (spec, columns, rows) in rows {
            let columns: Vec<Column> = serde_json::from_str(&columns).unwrap();
            serde_json::from_str::<Spec>(&spec).unwrap().check(&columns).unwrap();
            let rows: Vec<Vec<serde_json::Value>> = serde_json::from_str(&rows.unwrap()).unwrap();
            assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == columns.len()));
        }
    }
}
