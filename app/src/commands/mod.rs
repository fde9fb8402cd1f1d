//! The command line: one file a command. Each says what it did on stdout, and why it could not in one line on stderr.

mod apply;
mod audit;
mod key;
mod limits;
mod migrate;
mod serve;

use std::collections::HashMap;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use tollkeeper::clock::{SharedClock, SystemClock};
use tollkeeper::config::Config;
use tollkeeper::model::Error;
use tollkeeper::store::Store;

/// A gateway in front of language models: every workspace, user and provider key within its limits.
///
/// The server and all commands read the same environment (`DATABASE_URL`, `LLM_RATE_PER_MINUTE`, …);
/// docs/configuration.md lists it. Commands work beside a running server.
#[derive(Parser)]
#[command(
    name = "tollkeeper",
    version,
    after_help = "Exit codes: 0 done, 1 the work failed, 2 bad usage or configuration."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server.
    Serve(serve::Arguments),
    /// Make workspaces, users, sources, dashboards and platforms match a file.
    Apply(apply::Arguments),
    /// Show or change the limits of workspaces.
    #[command(subcommand)]
    Limits(limits::Command),
    /// Make, list or revoke API keys.
    #[command(subcommand)]
    Key(key::Command),
    /// Check the trail of changes.
    #[command(subcommand)]
    Audit(audit::Command),
    /// Bring the database up to date, and stop.
    Migrate,
}

/// Why a command did not do its work.
pub enum Failure {
    /// Exit code 2: lines for stderr, each naming the variable, key or argument.
    Usage(Vec<String>),
    /// Exit code 1.
    Failed(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // The log is where a server's operator looks; at the command line there is only this line.
            Error::Internal => {
                Failure::Failed("a database statement failed; set RUST_LOG=error to see which".into())
            }
            error => Failure::Failed(error.to_string()),
        }
    }
}

type Done = Result<(), Failure>;

impl Cli {
    pub async fn run(self) -> Done {
        let config = Config::from_env(&environment()).map_err(Failure::Usage)?;
        let filter = std::env::var("RUST_LOG").ok();
        // A command's own lines are enough, unless more is asked for.
        let quiet = if matches!(self.command, Command::Serve(_)) { "info" } else { "off" };
        let filter = filter.filter(|text| !text.is_empty()).unwrap_or_else(|| quiet.to_owned());
        tollkeeper::telemetry::log(&filter, config.production)
            .map_err(|fault| Failure::Usage(vec![fault]))?;
        match self.command {
            Command::Serve(arguments) => serve::run(arguments, config).await,
            Command::Apply(arguments) => apply::run(&arguments, &config).await,
            Command::Limits(command) => limits::run(command, &config).await,
            Command::Key(command) => key::run(command, &config).await,
            Command::Audit(command) => audit::run(&command, &config).await,
            Command::Migrate => migrate::run(&config).await,
        }
    }
}

/// Variables whose name or value is no Unicode are none of ours.
fn environment() -> HashMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The database, up to date.
async fn open(config: &Config) -> Result<Store, Failure> {
    Store::open(&config.database).await.map_err(Failure::Failed)
}

fn clock() -> SharedClock {
    Arc::new(SystemClock)
}
