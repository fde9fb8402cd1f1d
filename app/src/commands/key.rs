//! `tollkeeper key create|list|revoke`

use clap::{Args, Subcommand};
use tollkeeper::audit::Actor;
use tollkeeper::config::Config;
use tollkeeper::identity::{Identity, NewKey};
use tollkeeper::model::{Timestamp, WorkspaceId};

use super::{Done, clock, open};

/// Keys read at once for the list.
const STEP: u32 = 200;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Make a key and print it, this once.
    Create(Create),
    /// List keys, newest first.
    List,
    /// Revoke a key; requests that use it are refused from now on.
    Revoke {
        /// The key's id, as `key list` prints it.
        id: String,
    },
}

#[derive(Args)]
pub(super) struct Create {
    /// The user as whom the key acts.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// The one workspace in which it works.
    #[arg(long, value_name = "ID")]
    workspace: String,
    /// What it is for.
    #[arg(long)]
    name: String,
}

pub(super) async fn run(command: Command, config: &Config) -> Done {
    let store = open(config).await?;
    let identity = Identity::new(store.clone(), clock(), config.production);
    match command {
        Command::Create(create) => {
            let workspace = WorkspaceId::from(create.workspace);
            let new =
                NewKey { email: &create.user, workspace: &workspace, name: &create.name, expires_at: None };
            let created = identity.create_key(&Actor::Cli, new).await?;
            println!("{}", created.key);
            eprintln!("This is the only time that the key is shown. Its id is {}.", created.id);
        }
        Command::List => {
            let mut before = None;
            loop {
                let rows = identity.list_keys(None, before.as_deref(), STEP).await?;
                let Some(last) = rows.last() else { break };
                before = Some(last.id.clone());
                for row in &rows {
                    let state = if row.revoked_at.is_some() { "revoked" } else { "in use" };
                    let used = row.last_used_at.map_or_else(|| "never".to_owned(), Timestamp::rfc3339);
                    println!(
                        "{}  {}…  {state}  {} in {}  \"{}\"  made {}  last used {used}",
                        row.id, row.hint, row.email, row.workspace, row.name, row.created_at
                    );
                }
            }
        }
        Command::Revoke { id } => {
            identity.revoke_key(&Actor::Cli, &id, None).await?;
            println!("{id} is revoked.");
        }
    }
    store.close().await;
    Ok(())
}
