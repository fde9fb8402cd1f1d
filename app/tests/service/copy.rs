//! `copy` from the outside: what it says, what it leaves when it is killed, and what it needs.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Setup, Site, stderr};

const PLATFORM: &str = "[[platform]]\nid = \"beta\"\nbase_url = \"UPSTREAM\"\n[[platform.key]]\nlabel = \"main\"\nsecret = \"sk-beta\"\n\
                        [[platform.model]]\nid = \"model-2\"\nalias = \"default\"\n";

fn address(path: &Path) -> String {
    format!("sqlite://{}", path.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_goes_on_with_the_copy_and_its_secret_key() {
    let mut site = Setup::new().directory(PLATFORM).start().await;
    let eve = site.key("eve@example.com", "acme");
    assert_eq!(eve.complete().await.status, 200);
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (address(&site.database), address(&folder.path().join("new.db")));
    // Beside the running server.
    let done = site.cli(&["copy", "--from", &from, "--to", &to]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let told = String::from_utf8(done.stdout).unwrap();
    assert!(told.contains("llm_usage ") && told.contains("The audit trail is whole: "), "{told}");
    assert!(told.contains("TOLLKEEPER_SECRET_KEY"), "{told}");
    let again = site.cli(&["copy", "--from", &from, "--to", &to]);
    let refused = stderr(&again);
    assert_eq!(again.status.code(), Some(1), "{refused}");
    assert!(refused.contains("--to: the database holds data already (in the table "), "{refused}");
    assert_eq!(refused.lines().count(), 1);

    let before = site.tables(&["sessions", "api_keys"]).await;
    site.kill();
    let secret = std::fs::read_dir(site.database.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    let secret = secret.filter(|path| path.extension().is_some_and(|end| end == "key")).last().unwrap();
    let secret = std::fs::read_to_string(secret).unwrap();
    site.database = folder.path().join("new.db");
    site.set("DATABASE_URL", &to);
    site.set("TOLLKEEPER_SECRET_KEY", secret.trim());
    assert_eq!(site.tables(&["sessions", "api_keys"]).await, before);
    site.boot();
    let eve = eve.at(&site);
    assert_eq!(eve.complete().await.status, 200);
    let last = site.upstream.requests().last().unwrap().clone();
    assert_eq!(last.json()["model"], "model-2", "the sealed key opens");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_can_not_use_is_told_in_one_line_without_the_address() {
    let site = Site::start().await;
    let from = address(&site.database);
    let missing = address(&site.database.with_file_name("none.db"));
    let password = "postgres://me:hush-hush@localhost:port/x";
    for (arguments, code, told) in [
        (vec!["copy", "--from", &from], 2, "--to"),
        (
            vec!["copy", "--from", &from, "--to", password],
            2,
            "--to: is not accepted; it takes sqlite://PATH or postgres://",
        ),
        (vec!["copy", "--from", "x.db", "--to", &missing], 2, "--from: is not accepted"),
        (vec!["copy", "--from", &from, "--to", &from], 2, "--to: is the database of --from"),
        (vec!["copy", "--from", &missing, "--to", &from], 1, "--from: there is no SQLite database at "),
        (
            vec!["copy", "--from", &from, "--to", "postgres://me:hush-hush@127.0.0.1:1/x"],
            1,
            "--to: the PostgreSQL database can't be opened",
        ),
    ] {
        let done = site.cli(&arguments);
        let line = stderr(&done);
        assert_eq!(done.status.code(), Some(code), "{line}");
        assert!(line.contains(told) && !line.contains("hush-hush"), "{line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
}

/// The most memory that a process has had so far, in KiB.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Runs it to its end, and gives what it needed. It is looked at all the time: there is nothing to ask
/// once it has ended.
fn peak_of(mut command: Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut most = 0;
    let status = loop {
        most = peak(child.id()).unwrap_or(0).max(most);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success());
    most
}

/// Rows of 300 bytes.
async fn add_usage(site: &Site, rows: u32) {
    let sql = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO llm_usage (workspace_id, day, route, model, input_tokens, output_tokens, requests)
         SELECT 'w' || (i % 10000), date('2026-01-01', '+' || (i / 10000) || ' days'), 'chat',
             substr(hex(zeroblob(150)), 1, 300 - length(i)) || i, i, 1, 1 FROM n"
    );
    site.execute(&sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_need_no_more_memory_than_few() {
    let site = Site::start().await;
    let folder = tempfile::tempdir().unwrap();
    let from = address(&site.database);
    let to = |name: &str| address(&folder.path().join(name));
    let few = peak_of(site.command(&["copy", "--from", &from, "--to", &to("few.db")]));
    add_usage(&site, 100_000).await;
    let many = peak_of(site.command(&["copy", "--from", &from, "--to", &to("many.db")]));
    assert!(many < few + 16 * 1024, "{few} KiB without the rows, {many} KiB with them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_copy_is_begun_again() {
    let site = Site::start().await;
    add_usage(&site, 20_000).await;
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (address(&site.database), address(&folder.path().join("killed.db")));
    let arguments = ["copy", "--from", &from, "--to", &to];
    let mut child = site.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    // All of it is to be read back yet.
    assert!(told.any(|line| line.unwrap().starts_with("llm_usage ")));
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    let done = site.cli(&arguments);
    assert!(done.status.success(), "{}", stderr(&done));
}
