//! What a request costs on its way through the gateway: requests a second and how long each takes,
//! through `/v1` with limits and ledger on, against the same provider asked directly.
//!
//! Asker, gateway and provider share this machine, so the rates are no promise; what the gateway adds
//! to a request, and the CPU time that it spends on one, are. docs/performance.md says how to run it.
#![expect(clippy::unwrap_used, reason = "a measurement that can't go on has to stop")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use futures::future::join_all;
use tokio::net::TcpListener;
use tokio::time::Instant;

const AT_ONCE: [usize; 3] = [1, 16, 64];
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURE: Duration = Duration::from_secs(5);

const QUESTION: &str = r#"{"model":"default","messages":[{"role":"user","content":"Say something"}]}"#;
const ANSWER: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"model-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Something."}}],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}}"#;

/// Limits that are looked at and charged, and never reached.
const DIRECTORY: &str = r#"
[[workspace]]
id = "acme"
name = "Acme"
rate_per_minute = 2147483647
daily_token_budget = 9007199254740991

[[user]]
email = "eve@example.com"
password = "correct-horse-battery-staple"
memberships = [{ workspace = "acme", role = "editor" }]
"#;

fn main() {
    // `cargo test --benches` only wants to know whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(compare());
}

async fn compare() {
    let provider = start_provider().await;
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), &provider);
    println!(
        "{:10} {:>8} {:>12} {:>10} {:>10} {:>16}",
        "asked", "at once", "requests/s", "p50", "p99", "gateway CPU"
    );
    for at_once in AT_ONCE {
        let direct = measure(&format!("{provider}/chat/completions"), "unused", at_once).await;
        direct.print("provider", at_once, None);
        let before = gateway.cpu();
        let through =
            measure(&format!("{}/v1/chat/completions", gateway.address), &gateway.key, at_once).await;
        // The warm-up's requests took CPU time too, and are counted.
        let spent = gateway.cpu().saturating_sub(before) / u32::try_from(through.all).unwrap();
        through.print("gateway", at_once, Some(spent));
    }
}

async fn start_provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let answer = async || ([("content-type", "application/json")], ANSWER);
    let router = Router::new().route("/v1/chat/completions", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

struct Gateway {
    process: Child,
    address: String,
    key: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Gateway {
    fn start(folder: &Path, provider: &str) -> Self {
        let tollkeeper = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tollkeeper"));
            command
                .args(arguments)
                .env_clear()
                .env("DATABASE_URL", format!("sqlite://{}", folder.join("load.db").display()))
                .env("TOLLKEEPER_ADDR", "127.0.0.1:0")
                .env("LLM_BASE_URL", provider)
                .env("LLM_MODEL", "model-1");
            command
        };
        let file = folder.join("directory.toml");
        std::fs::write(&file, DIRECTORY).unwrap();
        assert!(tollkeeper(&["apply", &file.display().to_string()]).status().unwrap().success());
        let new_key = ["key", "create", "--user", "eve@example.com", "--workspace", "acme", "--name", "load"];
        let key = String::from_utf8(tollkeeper(&new_key).output().unwrap().stdout).unwrap().trim().to_owned();
        let mut process = tollkeeper(&["serve"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address =
            lines.find_map(|line| line.strip_prefix("Tollkeeper is on ").map(str::to_owned)).unwrap();
        // Read on, or the server would wait for room to print.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address, key }
    }

    /// CPU time of the process so far, of all its threads.
    fn cpu(&self) -> Duration {
        const TICK: Duration = Duration::from_millis(10);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        // After the name in brackets: state is the 3rd field, user and system time the 14th and 15th.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        TICK * fields[11..=12].iter().map(|ticks| ticks.parse::<u32>().unwrap()).sum::<u32>()
    }
}

struct Measured {
    /// Of every request after the warm-up, shortest first.
    spans: Vec<Duration>,
    /// Requests in all, the warm-up's too.
    all: usize,
}

/// Asks again as soon as an answer has come, from so many places at once.
async fn measure(url: &str, key: &str, at_once: usize) -> Measured {
    let client = Arc::new(reqwest::Client::new());
    let begun = Instant::now();
    let askers = (0..at_once).map(|_| {
        let (client, url, key) = (client.clone(), url.to_owned(), key.to_owned());
        tokio::spawn(async move {
            let (mut spans, mut all) = (Vec::new(), 0);
            while begun.elapsed() < WARM_UP + MEASURE {
                let asked = Instant::now();
                let request = client.post(&url).bearer_auth(&key).header("content-type", "application/json");
                let answer = request.body(QUESTION).send().await.unwrap().error_for_status().unwrap();
                assert!(answer.text().await.unwrap().contains("Something."));
                all += 1;
                if begun.elapsed() > WARM_UP {
                    spans.push(asked.elapsed());
                }
            }
            (spans, all)
        })
    });
    let mut measured = Measured { spans: Vec::new(), all: 0 };
    for asker in join_all(askers).await {
        let (spans, all) = asker.unwrap();
        measured.spans.extend(spans);
        measured.all += all;
    }
    measured.spans.sort();
    measured
}

impl Measured {
    fn print(&self, what: &str, at_once: usize, cpu: Option<Duration>) {
        let per_second = self.spans.len() as u64 / MEASURE.as_secs();
        let at = |percent: usize| format!("{:.2?}", self.spans[self.spans.len() * percent / 100]);
        let cpu = cpu.map_or_else(String::new, |cpu| format!("{cpu:.0?} a request"));
        println!("{what:10} {at_once:>8} {per_second:>12} {:>10} {:>10} {cpu:>16}", at(50), at(99));
    }
}
