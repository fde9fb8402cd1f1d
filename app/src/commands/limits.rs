//! `tollkeeper limits show|set`

use clap::{Args, Subcommand};
use tollkeeper::audit::Actor;
use tollkeeper::config::Config;
use tollkeeper::limits::overrides;
use tollkeeper::model::fmt::thousands;
use tollkeeper::model::limit::{BUDGET_MAX, LimitChange, RATE_MAX, parse_setting};
use tollkeeper::model::reports::{LimitRow, WorkspaceRow};
use tollkeeper::model::{Setting, WorkspaceId};
use tollkeeper::reports::{Reports, Scope};

use super::{Done, Failure, clock, open};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Print effective limits, where they come from, and today's usage.
    Show(Show),
    /// Change a workspace's override; the next model request obeys it.
    Set(Set),
}

#[derive(Args)]
pub(super) struct Show {
    /// One workspace; all when left out.
    workspace: Option<String>,
    /// Print JSON, in the form of GET /api/admin/workspaces.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct Set {
    workspace: String,
    #[command(flatten)]
    change: Change,
}

/// One of them at least: a group of the workspace too would be filled by it alone.
#[derive(Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// Requests a minute and user: a whole number (0 disables the limit) or `inherit`.
    #[arg(long, value_parser = rate, allow_hyphen_values = true, value_name = "N|inherit")]
    rate: Option<Setting>,
    /// Tokens a day: a whole number (0 disables the limit) or `inherit`.
    #[arg(long, value_parser = budget, allow_hyphen_values = true, value_name = "N|inherit")]
    budget: Option<Setting>,
}

fn rate(text: &str) -> Result<Setting, String> {
    parse_setting(text, RATE_MAX).map_err(|accepted| format!("it takes {accepted}"))
}

fn budget(text: &str) -> Result<Setting, String> {
    parse_setting(text, BUDGET_MAX).map_err(|accepted| format!("it takes {accepted}"))
}

pub(super) async fn run(command: Command, config: &Config) -> Done {
    let store = open(config).await?;
    let reports = Reports::new(store.clone(), clock(), config.defaults);
    match command {
        Command::Show(show) => {
            let rows = match &show.workspace {
                Some(one) => vec![reports.workspace_row(&WorkspaceId::from(one.as_str())).await?],
                None => reports.workspace_rows(&Scope::All).await?,
            };
            if show.json {
                let text = serde_json::to_string_pretty(&rows)
                    .map_err(|error| Failure::Failed(format!("the rows can't be told as JSON: {error}")))?;
                println!("{text}");
            } else {
                rows.iter().for_each(print);
            }
        }
        Command::Set(set) => {
            let workspace = WorkspaceId::from(set.workspace);
            let change = LimitChange { rate: set.change.rate, budget: set.change.budget };
            overrides::change(&store, clock().now(), &Actor::Cli, &workspace, change).await?;
            print(&reports.workspace_row(&workspace).await?);
        }
    }
    store.close().await;
    Ok(())
}

fn print(row: &WorkspaceRow) {
    let limit = |limit: &LimitRow| {
        let value =
            if limit.is_disabled() { String::new() } else { format!("{} ", thousands(limit.effective)) };
        format!("{value}({})", limit.source_word())
    };
    let today = &row.today;
    println!(
        "{}: rate per user and minute {}, daily token budget {}; today {} tokens, {} requests, refused {} by rate and {} by budget",
        row.id,
        limit(&row.rate),
        limit(&row.budget),
        thousands(today.tokens()),
        thousands(today.requests),
        thousands(today.refused_rate),
        thousands(today.refused_budget),
    );
}
