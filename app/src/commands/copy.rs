//! `tollkeeper copy`

use clap::Args;
use tollkeeper::copy::copy;
use tollkeeper::model::fmt::{counted, thousands};
use tollkeeper::store::DatabaseUrl;

use super::{Done, Failure};

/// Copies a database into an empty one.
///
/// The source is read in one transaction and left as it is; a server may go on writing to it, and what it
/// writes after the copy has begun is not copied. The target is written in one transaction: it receives
/// everything or nothing, so a copy that was interrupted is simply begun again. All rows are read back and
/// compared, and the audit trail's chain is checked, before the copy counts as done.
#[derive(Args)]
pub(super) struct Arguments {
    /// The database to read, in the form of `DATABASE_URL`. Its schema has to be of this version.
    #[arg(long, value_name = "URL")]
    from: String,
    /// The database to fill: one that is empty, or a file that does not exist yet.
    #[arg(long, value_name = "URL")]
    to: String,
}

pub(super) async fn run(arguments: &Arguments) -> Done {
    let (from, to) = (url("--from", &arguments.from)?, url("--to", &arguments.to)?);
    if from.is_same_as(&to) {
        return Err(Failure::Usage(vec!["--to: is the database of --from; it takes another one".into()]));
    }
    let told = |table: &str, rows: u64| println!("{table:20} {:>15}", thousands(rows));
    let copied = copy(&from, &to, told).await.map_err(Failure::Failed)?;
    println!(
        "Copied {} of {}; read back and compared. The audit trail is whole: {}.",
        counted(copied.rows(), "row", "rows"),
        counted(u64::try_from(copied.tables.len()).unwrap_or(u64::MAX), "table", "tables"),
        counted(copied.audit_entries, "entry", "entries"),
    );
    if copied.has_sealed_keys() {
        println!(
            "Provider keys stay encrypted: give the server the secret key that it has had so far, as \
             TOLLKEEPER_SECRET_KEY (the text of the .key file beside an SQLite database)."
        );
    }
    Ok(())
}

/// Not clap's to parse: its message would repeat the value, which may hold a password.
fn url(name: &str, text: &str) -> Result<DatabaseUrl, Failure> {
    DatabaseUrl::parse(text)
        .map_err(|accepted| Failure::Usage(vec![format!("{name}: is not accepted; it takes {accepted}")]))
}
