//! `tollkeeper apply`

use std::path::PathBuf;

use clap::Args;
use tollkeeper::config::Config;
use tollkeeper::directory::{ApplyError, File, apply};
use tollkeeper::providers::secret_key;

use super::{Done, Failure, clock, open};

#[derive(Args)]
pub(super) struct Arguments {
    /// The directory file (docs/directory-file.md).
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Print what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(arguments: &Arguments, config: &Config) -> Done {
    let from_environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let file = File::read(&arguments.file, &from_environment).map_err(|fault| Failure::Usage(vec![fault]))?;
    let store = open(config).await?;
    let secret = secret_key(config).map_err(Failure::Failed)?;
    let report =
        apply(&store, &*clock(), &secret, &file, arguments.dry_run).await.map_err(|error| match error {
            ApplyError::Form(fault) => Failure::Usage(vec![fault]),
            ApplyError::Refused(why) => Failure::Failed(why),
        })?;
    print!("{report}");
    store.close().await;
    Ok(())
}
