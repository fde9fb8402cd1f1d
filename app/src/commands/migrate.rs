//! `tollkeeper migrate`

use tollkeeper::config::Config;

use super::{Done, open};

pub(super) async fn run(config: &Config) -> Done {
    open(config).await?.close().await;
    println!("The database is up to date.");
    Ok(())
}
