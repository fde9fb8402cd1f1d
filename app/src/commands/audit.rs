//! `tollkeeper audit verify`

use clap::Subcommand;
use tollkeeper::audit::{Verdict, verify};
use tollkeeper::config::Config;
use tollkeeper::model::Error;
use tollkeeper::model::fmt::counted;

use super::{Done, Failure, open};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Check the hash chain; name the first broken entry.
    Verify,
}

pub(super) async fn run(command: &Command, config: &Config) -> Done {
    let Command::Verify = command;
    let store = open(config).await?;
    let verdict = verify(&store).await.map_err(Error::from)?;
    store.close().await;
    match verdict {
        Verdict::Whole { entries } => {
            println!("The audit trail is whole: {}.", counted(entries, "entry", "entries"));
            Ok(())
        }
        Verdict::Broken { id, why } => {
            Err(Failure::Failed(format!("the audit trail is broken at entry {id}: {why}")))
        }
    }
}
