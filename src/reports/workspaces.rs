//! The list of workspaces: searched, filtered, sorted and paged by the database.

use std::collections::HashMap;

use sqlx::any::AnyArguments;
use sqlx::query::QueryAs;
use sqlx::{Any, AssertSqlSafe};

use super::{Columns, Reports, Scope};
use crate::model::ids::is_id;
use crate::model::reports::{
    NEAR_PERCENT, PAGE_SIZE, Totals, WorkspaceFilter, WorkspaceListRow, WorkspaceRow, WorkspaceSort,
    WorkspacesPage, WorkspacesQuery,
};
use crate::model::{Day, Error, WorkspaceId};
use crate::store::{to_i64, to_u64};

/// Every workspace with its settings and its counts of the day `$1`; `$2` is the environment's
/// budget. `{scope}` is replaced by the condition on the workspaces.
const TODAY: &str = "WITH today AS (
    SELECT w.id AS id, w.name AS name, l.rate_per_minute AS rate, l.daily_token_budget AS budget,
        COALESCE(l.daily_token_budget, CAST($2 AS BIGINT)) AS effective,
        COALESCE(u.input, 0) AS input, COALESCE(u.output, 0) AS output, COALESCE(u.requests, 0) AS requests,
        COALESCE(r.rate, 0) AS refused_rate, COALESCE(r.budget, 0) AS refused_budget
    FROM workspaces w
    LEFT JOIN workspace_limits l ON l.workspace_id = w.id
    LEFT JOIN (
        SELECT workspace_id, CAST(SUM(input_tokens) AS BIGINT) AS input, CAST(SUM(output_tokens) AS BIGINT) AS output,
            CAST(SUM(requests) AS BIGINT) AS requests
        FROM llm_usage WHERE day = date($1) GROUP BY workspace_id
    ) u ON u.workspace_id = w.id
    LEFT JOIN (
        SELECT workspace_id,
            CAST(SUM(CASE WHEN kind = 'rate' THEN refused ELSE 0 END) AS BIGINT) AS rate,
            CAST(SUM(CASE WHEN kind = 'budget' THEN refused ELSE 0 END) AS BIGINT) AS budget
        FROM llm_refusals WHERE day = date($1) GROUP BY workspace_id
    ) r ON r.workspace_id = w.id
    {scope}
)";

const COLUMNS: &str = "id, name, rate, budget, input, output, requests, refused_rate, refused_budget";

/// A statement put together from constants of this file, and the values that are bound to it.
struct Statement {
    sql: String,
    binds: Vec<Bind>,
}

enum Bind {
    Text(String),
    Number(i64),
}

impl Statement {
    fn today(day: Day, budget: u64, scope: &Scope) -> Self {
        let mut statement = Statement {
            sql: String::new(),
            binds: vec![Bind::Text(day.ymd()), Bind::Number(to_i64(budget))],
        };
        let scope = match scope {
            Scope::All => String::new(),
            Scope::Only(some) => format!("WHERE w.id IN ({})", statement.list(some)),
        };
        statement.sql = TODAY.replace("{scope}", &scope);
        statement
    }

    fn bind(&mut self, value: Bind) -> String {
        self.binds.push(value);
        format!("${}", self.binds.len())
    }

    /// Places for ids; for none, a value that no id equals.
    fn list(&mut self, ids: &[WorkspaceId]) -> String {
        if ids.is_empty() {
            return "NULL".into();
        }
        ids.iter().map(|id| self.bind(Bind::Text(id.as_str().to_owned()))).collect::<Vec<_>>().join(", ")
    }

    fn push(&mut self, text: &str) {
        self.sql.push(' ');
        self.sql.push_str(text);
    }

    fn query<T>(self) -> QueryAs<'static, Any, T, AnyArguments>
    where
        T: for<'r> sqlx::FromRow<'r, sqlx::any::AnyRow>,
    {
        self.binds.into_iter().fold(sqlx::query_as(AssertSqlSafe(self.sql)), |query, bind| match bind {
            Bind::Text(text) => query.bind(text),
            Bind::Number(number) => query.bind(number),
        })
    }
}

impl Reports {
    /// All rows that the scope allows, by id.
    pub async fn workspace_rows(&self, scope: &Scope) -> Result<Vec<WorkspaceRow>, Error> {
        let today = self.clock.now().day();
        let mut statement = Statement::today(today, self.defaults.budget.number(), scope);
        statement.push(&format!("SELECT {COLUMNS} FROM today ORDER BY id"));
        let rows: Vec<Columns> = statement.query().fetch_all(self.store.read()).await?;
        Ok(rows.into_iter().map(|row| self.row(row, today)).collect())
    }

    /// One workspace's row.
    ///
    /// # Errors
    /// `NotFound` for one that doesn't exist.
    pub async fn workspace_row(&self, workspace: &WorkspaceId) -> Result<WorkspaceRow, Error> {
        if !is_id(workspace.as_str()) {
            return Err(Error::no_such("workspace", workspace.as_str()));
        }
        let rows = self.workspace_rows(&Scope::Only(vec![workspace.clone()])).await?;
        rows.into_iter().next().ok_or_else(|| Error::no_such("workspace", workspace.as_str()))
    }

    /// A page of the list, with the totals over all that the scope allows.
    pub async fn workspaces_page(
        &self,
        scope: &Scope,
        query: &WorkspacesQuery,
    ) -> Result<WorkspacesPage, Error> {
        let now = self.clock.now();
        let today = now.day();
        let totals = self.totals(scope, today).await?;
        let (matching, columns, page, pages) = self.page(scope, query, today).await?;
        let rows: Vec<WorkspaceRow> = columns.into_iter().map(|row| self.row(row, today)).collect();
        let mut weeks = self.weeks(&rows, today).await?;
        let rows = rows
            .into_iter()
            .map(|row| WorkspaceListRow { week: weeks.remove(&row.id).unwrap_or_else(|| vec![0; 7]), row })
            .collect();
        Ok(WorkspacesPage { now, resets_at: today.end(), rows, page, pages, matching, totals })
    }

    async fn page(
        &self,
        scope: &Scope,
        query: &WorkspacesQuery,
        today: Day,
    ) -> Result<(u64, Vec<Columns>, u32, u32), Error> {
        let filtered = |select: &str| {
            let mut statement = Statement::today(today, self.defaults.budget.number(), scope);
            statement.push(&format!("SELECT {select} FROM today WHERE 1 = 1"));
            let search = query.search.trim();
            if !search.is_empty() {
                let place = statement.bind(Bind::Text(like(search)));
                statement.push(&format!(
                    "AND (LOWER(id) LIKE {place} ESCAPE '\\' OR LOWER(name) LIKE {place} ESCAPE '\\')"
                ));
            }
            if let Some(condition) = condition(query.filter) {
                statement.push(&format!("AND {condition}"));
            }
            statement
        };
        let (matching,): (i64,) =
            filtered("CAST(COUNT(*) AS BIGINT)").query().fetch_one(self.store.read()).await?;
        let matching = to_u64(matching);
        let pages = u32::try_from(matching.div_ceil(u64::from(PAGE_SIZE))).unwrap_or(u32::MAX).max(1);
        let page = query.page.clamp(1, pages);
        let mut statement = filtered(COLUMNS);
        statement.push(&format!("ORDER BY {}", order(query.sort)));
        let limit = statement.bind(Bind::Number(i64::from(PAGE_SIZE)));
        let offset = statement.bind(Bind::Number(i64::from(PAGE_SIZE) * i64::from(page - 1)));
        statement.push(&format!("LIMIT {limit} OFFSET {offset}"));
        Ok((matching, statement.query().fetch_all(self.store.read()).await?, page, pages))
    }

    async fn totals(&self, scope: &Scope, today: Day) -> Result<Totals, Error> {
        let mut statement = Statement::today(today, self.defaults.budget.number(), scope);
        let count = |filter| {
            let condition = condition(filter).unwrap_or("1 = 1");
            format!("CAST(COALESCE(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS BIGINT)")
        };
        statement.push(&format!(
            "SELECT CAST(COUNT(*) AS BIGINT), CAST(COALESCE(SUM(input + output), 0) AS BIGINT),
                CAST(COALESCE(SUM(requests), 0) AS BIGINT), CAST(COALESCE(SUM(refused_rate), 0) AS BIGINT),
                CAST(COALESCE(SUM(refused_budget), 0) AS BIGINT), {}, {}, {} FROM today",
            count(WorkspaceFilter::Near),
            count(WorkspaceFilter::Overridden),
            count(WorkspaceFilter::Refusing),
        ));
        type Sums = (i64, i64, i64, i64, i64, i64, i64, i64);
        let (workspaces, tokens, requests, refused_rate, refused_budget, near, overridden, refusing): Sums =
            statement.query().fetch_one(self.store.read()).await?;

        let mut statement = Statement::today(today.plus(-1), self.defaults.budget.number(), scope);
        statement.push("SELECT CAST(COALESCE(SUM(input + output), 0) AS BIGINT) FROM today");
        let (yesterday,): (i64,) = statement.query().fetch_one(self.store.read()).await?;
        Ok(Totals {
            workspaces: to_u64(workspaces),
            tokens: to_u64(tokens),
            tokens_yesterday: to_u64(yesterday),
            requests: to_u64(requests),
            refused_rate: to_u64(refused_rate),
            refused_budget: to_u64(refused_budget),
            near: to_u64(near),
            overridden: to_u64(overridden),
            refusing: to_u64(refusing),
        })
    }

    /// Tokens of the last seven days, by workspace, for the rows of one page.
    async fn weeks(
        &self,
        rows: &[WorkspaceRow],
        today: Day,
    ) -> Result<HashMap<WorkspaceId, Vec<u64>>, Error> {
        let first = today.plus(-6);
        let mut statement = Statement { sql: String::new(), binds: Vec::new() };
        let from = statement.bind(Bind::Text(first.ymd()));
        let to = statement.bind(Bind::Text(today.ymd()));
        let ids: Vec<WorkspaceId> = rows.iter().map(|row| row.id.clone()).collect();
        let list = statement.list(&ids);
        statement.push(&format!(
            "SELECT workspace_id, CAST(day AS TEXT), CAST(SUM(input_tokens + output_tokens) AS BIGINT) FROM llm_usage
             WHERE workspace_id IN ({list}) AND day >= date({from}) AND day <= date({to}) GROUP BY workspace_id, day"
        ));
        let sums: Vec<(String, String, i64)> = statement.query().fetch_all(self.store.read()).await?;
        let mut weeks: HashMap<WorkspaceId, Vec<u64>> = HashMap::new();
        for (workspace, day, tokens) in sums {
            let Some(day) = Day::parse(&day) else { continue };
            let week = weeks.entry(workspace.into()).or_insert_with(|| vec![0; 7]);
            if let Some(slot) = usize::try_from(day.0 - first.0).ok().and_then(|at| week.get_mut(at)) {
                *slot = to_u64(tokens);
            }
        }
        Ok(weeks)
    }
}

fn condition(filter: WorkspaceFilter) -> Option<&'static str> {
    // NEAR_PERCENT stands in the text because a bound value would shift the places of the others.
    const { assert!(NEAR_PERCENT == 80) };
    match filter {
        WorkspaceFilter::All => None,
        WorkspaceFilter::Near => Some("(effective > 0 AND (input + output) * 100.0 >= effective * 80.0)"),
        WorkspaceFilter::Overridden => Some("(rate IS NOT NULL OR budget IS NOT NULL)"),
        WorkspaceFilter::Refusing => Some("(refused_rate + refused_budget > 0)"),
    }
}

fn order(sort: WorkspaceSort) -> &'static str {
    match sort {
        // Without a budget there is no share: such rows come last.
        WorkspaceSort::Share => {
            "CASE WHEN effective > 0 THEN (input + output) * 1.0 / effective ELSE -1.0 END DESC, id"
        }
        WorkspaceSort::Name => "LOWER(name), id",
        WorkspaceSort::Tokens => "input + output DESC, id",
        WorkspaceSort::Requests => "requests DESC, id",
        WorkspaceSort::Refused => "refused_rate + refused_budget DESC, id",
    }
}

/// A pattern that finds `text` anywhere, its own `%`, `_` and `\` taken as they are.
fn like(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.to_lowercase().chars().filter(|c| !c.is_control()).take(200) {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
