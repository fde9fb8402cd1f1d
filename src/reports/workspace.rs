//! One workspace's page.

use super::{Reports, audit_line};
use crate::audit;
use crate::model::reports::{DayTokens, Part, WorkspaceDetail};
use crate::model::{Day, Error, WorkspaceId};
use crate::store::to_u64;

/// Days of the chart, today included.
const DAYS: i64 = 30;
/// The most parts of each kind that a page lists; the largest come first.
const PARTS: usize = 20;
const AUDIT_LINES: i64 = 10;

impl Reports {
    /// # Errors
    /// `NotFound` for a workspace that doesn't exist.
    pub async fn workspace(&self, workspace: &WorkspaceId) -> Result<WorkspaceDetail, Error> {
        let now = self.clock.now();
        let today = now.day();
        let row = self.workspace_row(workspace).await?;
        let rows =
            crate::ledger::read::rows(&self.store, Some(workspace), today.plus(1 - DAYS), today).await?;

        let (mut by_route, mut by_model, mut estimated_tokens) = (Vec::new(), Vec::new(), 0);
        let mut days: Vec<DayTokens> = (1 - DAYS..=0)
            .map(|back| DayTokens { day: today.plus(back), input_tokens: 0, output_tokens: 0, requests: 0 })
            .collect();
        for used in &rows {
            if let Some(day) = days.iter_mut().find(|day| day.day == used.day) {
                day.input_tokens += used.input_tokens;
                day.output_tokens += used.output_tokens;
                day.requests += used.requests;
            }
            if used.day == today {
                let tokens = used.input_tokens + used.output_tokens;
                add(&mut by_route, &used.route, tokens, used.requests);
                add(&mut by_model, &used.model, tokens, used.requests);
                estimated_tokens += used.estimated_input_tokens + used.estimated_output_tokens;
            }
        }
        let query = audit::Query {
            workspace: Some(workspace.clone()),
            limit: AUDIT_LINES,
            ..audit::Query::default()
        };
        let audit = audit::list(&self.store, &query).await?;
        Ok(WorkspaceDetail {
            now,
            row,
            default_rate: self.defaults.rate.number(),
            default_budget: self.defaults.budget.number(),
            estimated_tokens,
            by_route: largest_first(by_route),
            by_model: largest_first(by_model),
            by_user: self.by_user(workspace, today).await?,
            days,
            audit: audit.into_iter().map(audit_line).collect(),
        })
    }

    async fn by_user(&self, workspace: &WorkspaceId, day: Day) -> Result<Vec<Part>, Error> {
        let rows: Vec<(Option<String>, i64, i64)> = sqlx::query_as(
            "SELECT p.email, u.input_tokens + u.output_tokens, u.requests
             FROM llm_usage_by_user u LEFT JOIN users p ON p.id = u.user_id
             WHERE u.workspace_id = $1 AND u.day = date($2)
             ORDER BY u.input_tokens + u.output_tokens DESC, u.user_id LIMIT $3",
        )
        .bind(workspace.as_str().to_owned())
        .bind(day.ymd())
        .bind(i64::try_from(PARTS).unwrap_or(i64::MAX))
        .fetch_all(self.store.read())
        .await?;
        let part = |(email, tokens, requests): (Option<String>, i64, i64)| Part {
            name: email.unwrap_or_else(|| "a removed user".into()),
            tokens: to_u64(tokens),
            requests: to_u64(requests),
        };
        Ok(rows.into_iter().map(part).collect())
    }
}

fn add(parts: &mut Vec<Part>, name: &str, tokens: u64, requests: u64) {
    match parts.iter_mut().find(|part| part.name == name) {
        Some(part) => {
            part.tokens += tokens;
            part.requests += requests;
        }
        None => parts.push(Part { name: name.to_owned(), tokens, requests }),
    }
}

fn largest_first(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.name.cmp(&b.name)));
    parts.truncate(PARTS);
    parts
}
