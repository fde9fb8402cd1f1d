//! A server of one's own: started, asked, killed, started again, and looked into.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;
use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tempfile::TempDir;

use crate::scripted::{Act, Script, Scripted, answer, stream_head};

pub const PASSWORD: &str = "correct-horse-battery-staple";
/// Of [`PASSWORD`], so that a test doesn't spend its time on hashing.
const HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$Wby52Kq9s3VuAt4qO69z0A$LXkeRYCqHXOoPlTLXIYM1DnjI8BhEt8ujg0l7CataOY";
pub const UPSTREAM_KEY: &str = "sk-upstream-secret";
/// How long another process may take to get somewhere, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(20);

/// acme and globex; one person of each role in acme, one in both, one in globex alone.
const DIRECTORY: &str = r#"
[[source]]
id = "sales"
workspace = "acme"
name = "Sales"
kind = "csv"
definition = { columns = ["day", "region", "amount"], rows = [["2026-01-01", "south", "12"], ["2026-01-02", "north", "7"]] }

[[source]]
id = "parts"
workspace = "globex"
name = "Parts"
kind = "csv"
definition = { columns = ["part", "stock"] }

[[dashboard]]
id = "revenue"
workspace = "acme"
source = "sales"
name = "Revenue"

[[dashboard]]
id = "stock"
workspace = "globex"
source = "parts"
name = "Stock"
"#;

/// Workspace and role.
type Memberships = &'static [(&'static str, &'static str)];

/// E-mail address, admin, memberships.
const USERS: [(&str, bool, Memberships); 6] = [
    ("root@example.com", true, &[]),
    ("ada@example.com", false, &[("acme", "source-admin")]),
    ("eve@example.com", false, &[("acme", "editor")]),
    ("vic@example.com", false, &[("acme", "viewer")]),
    ("bob@example.com", false, &[("acme", "editor"), ("globex", "editor")]),
    ("gil@example.com", false, &[("globex", "editor")]),
];

/// What a server is started with.
pub struct Setup {
    variables: BTreeMap<String, String>,
    acme: String,
    more: String,
    upstream: Script,
}

impl Setup {
    pub fn new() -> Self {
        Self {
            variables: BTreeMap::new(),
            acme: String::new(),
            more: String::new(),
            upstream: spec_answer(7, 3),
        }
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// acme's requests a minute and user.
    pub fn rate(mut self, limit: u64) -> Self {
        let _ = writeln!(self.acme, "rate_per_minute = {limit}");
        self
    }

    /// acme's tokens a day.
    pub fn budget(mut self, limit: u64) -> Self {
        let _ = writeln!(self.acme, "daily_token_budget = {limit}");
        self
    }

    /// A table to be added to the directory file, `UPSTREAM` standing for the provider's address.
    pub fn directory(mut self, toml: &str) -> Self {
        self.more.push_str(toml);
        self
    }

    /// What the provider answers unless told otherwise.
    pub fn upstream(mut self, script: Script) -> Self {
        self.upstream = script;
        self
    }

    pub async fn start(self) -> Site {
        let upstream = Scripted::start(self.upstream).await;
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("tollkeeper.db");
        let mut variables = self.variables;
        for (name, value) in [
            ("DATABASE_URL", format!("sqlite://{}", database.display())),
            ("TOLLKEEPER_ADDR", "127.0.0.1:0".into()),
            ("RUST_LOG", "info".into()),
            ("LLM_PLATFORM", "alpha".into()),
            ("LLM_BASE_URL", upstream.base_url()),
            ("LLM_API_KEY", UPSTREAM_KEY.into()),
            ("LLM_MODEL", "model-1".into()),
        ] {
            variables.entry(name.into()).or_insert(value);
        }
        let mut toml = format!("[[workspace]]\nid = \"acme\"\nname = \"Acme\"\n{}\n", self.acme);
        toml.push_str("[[workspace]]\nid = \"globex\"\nname = \"Globex\"\n");
        for (email, admin, memberships) in USERS {
            let memberships: Vec<String> = memberships
                .iter()
                .map(|(workspace, role)| format!("{{ workspace = \"{workspace}\", role = \"{role}\" }}"))
                .collect();
            let _ = write!(
                toml,
                "[[user]]\nemail = \"{email}\"\npassword_hash = \"{HASH}\"\nadmin = {admin}\nmemberships = [{}]\n",
                memberships.join(", ")
            );
        }
        toml.push_str(DIRECTORY);
        toml.push_str(&self.more.replace("UPSTREAM", &upstream.base_url()));
        let mut site = Site { folder, database, variables, toml, upstream, server: None };
        site.apply(&site.toml.clone());
        site.boot();
        site
    }
}

/// A server with its database and its provider. The server ends with it.
pub struct Site {
    folder: TempDir,
    pub database: PathBuf,
    variables: BTreeMap<String, String>,
    /// The directory file that was applied first.
    pub toml: String,
    pub upstream: Scripted,
    server: Option<Server>,
}

struct Server {
    child: Child,
    base: String,
    said: Arc<Mutex<String>>,
    listeners: Vec<std::thread::JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Site {
    pub async fn start() -> Self {
        Setup::new().start().await
    }

    /// Starts the server over what is there.
    pub fn boot(&mut self) {
        let mut child =
            self.command(&["serve"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (found, address) = mpsc::channel();
        let said = Arc::new(Mutex::new(String::new()));
        let out = listen(child.stdout.take().unwrap(), said.clone(), Some(found));
        let err = listen(child.stderr.take().unwrap(), said.clone(), None);
        let base = address.recv_timeout(PATIENCE);
        let mut server = Server { child, base: String::new(), said, listeners: vec![out, err] };
        server.base = base.unwrap_or_else(|_| panic!("it did not start: {}", server.said.lock().unwrap()));
        self.server = Some(server);
    }

    /// A variable of the servers and commands to come.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("the server runs")
    }

    /// `kill -9`, and whatever was under way with it.
    pub fn kill(&mut self) {
        self.server = None;
    }

    pub fn terminate(&self) {
        let pid = self.server().child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits for the end of a server that was asked to stop: how it ended, and all that it said.
    pub async fn ended(&mut self) -> (ExitStatus, String) {
        let mut server = self.server.take().expect("the server runs");
        let status = until("the server ends", async || server.child.try_wait().unwrap()).await;
        for listener in server.listeners.drain(..) {
            listener.join().unwrap();
        }
        let said = server.said.lock().unwrap().clone();
        (status, said)
    }

    /// What the server has written to stdout and stderr so far.
    pub fn said(&self) -> String {
        self.server().said.lock().unwrap().clone()
    }

    /// The binary in the site's folder and environment, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollkeeper"));
        command.args(arguments).env_clear().envs(&self.variables).current_dir(self.folder.path());
        command
    }

    /// A command beside the server.
    pub fn cli(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A command with other variables.
    pub fn cli_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
        self.command(arguments).envs(variables.iter().copied()).output().unwrap()
    }

    /// Applies a directory file that has no fault.
    pub fn apply(&self, toml: &str) {
        let done = self.cli(&["apply", &self.file(toml)]);
        assert!(done.status.success(), "{}", stderr(&done));
    }

    /// Writes a file into the site's folder and gives its path.
    pub fn file(&self, text: &str) -> String {
        let path = self.folder.path().join("directory.toml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub fn anyone(&self) -> Client {
        Client { http: reqwest::Client::new(), base: self.server().base.clone(), header: None }
    }

    pub async fn sign_in(&self, email: &str) -> Client {
        let client = self.anyone();
        let answer = client.post("/api/login", &json!({ "email": email, "password": PASSWORD })).await;
        assert_eq!(answer.status, 204, "{}", answer.text);
        let cookie = answer.headers["set-cookie"].to_str().unwrap();
        let pair = cookie.split(';').next().unwrap().to_owned();
        Client { header: Some(("cookie", pair)), ..client }
    }

    /// A new API key, and a client that uses it.
    pub fn key(&self, email: &str, workspace: &str) -> Client {
        let done = self.cli(&["key", "create", "--user", email, "--workspace", workspace, "--name", "test"]);
        assert!(done.status.success(), "{}", stderr(&done));
        let key = String::from_utf8(done.stdout).unwrap().trim().to_owned();
        Client { header: Some(("authorization", format!("Bearer {key}"))), ..self.anyone() }
    }

    // What is in the database.

    async fn connect(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(&self.database).busy_timeout(PATIENCE);
        options.connect().await.unwrap()
    }

    /// A statement of another program.
    pub async fn execute(&self, sql: &str) {
        let mut connection = self.connect().await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// The first column of the rows of a query, as text.
    pub async fn column(&self, sql: &str) -> Vec<String> {
        let mut connection = self.connect().await;
        let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned()));
        let rows = rows.fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        rows
    }

    pub async fn number(&self, sql: &str) -> i64 {
        self.column(&format!("SELECT CAST(({sql}) AS TEXT)")).await[0].parse().unwrap()
    }

    /// Input tokens, output tokens and requests of the ledger, over all rows of a condition.
    pub async fn totals(&self, condition: &str) -> (i64, i64, i64) {
        let sums = ["input_tokens", "output_tokens", "requests"];
        let sums =
            sums.map(|column| format!("SELECT COALESCE(SUM({column}), 0) FROM llm_usage WHERE {condition}"));
        (self.number(&sums[0]).await, self.number(&sums[1]).await, self.number(&sums[2]).await)
    }

    /// Waits for the ledger to hold this.
    pub async fn totals_become(&self, condition: &str, wanted: (i64, i64, i64)) {
        let seen = async || (self.totals(condition).await == wanted).then_some(());
        if !within(PATIENCE, seen).await {
            assert_eq!(self.totals(condition).await, wanted, "where {condition}");
        }
    }

    /// The bytes of the database and of what SQLite keeps beside it.
    pub fn database_files(&self) -> Vec<u8> {
        let mut kept = Vec::new();
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with("tollkeeper.db") {
                kept.extend(std::fs::read(path).unwrap());
            }
        }
        kept
    }

    /// Every row of every table that `leave_out` does not name, as JSON.
    pub async fn tables(&self, leave_out: &[&str]) -> BTreeMap<String, Vec<String>> {
        let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let mut tables = BTreeMap::new();
        for name in self.column(names).await {
            // Which servers run is no data: their rows are touched all the time.
            if name.starts_with("_sqlx") || name == "replicas" || leave_out.contains(&name.as_str()) {
                continue;
            }
            let columns = format!(
                "SELECT group_concat('''' || name || ''', \"' || name || '\"') FROM pragma_table_info('{name}')"
            );
            let columns = self.column(&columns).await.remove(0);
            let rows =
                self.column(&format!("SELECT json_object({columns}) AS row FROM {name} ORDER BY row")).await;
            tables.insert(name, rows);
        }
        tables
    }
}

fn listen(
    from: impl Read + Send + 'static,
    said: Arc<Mutex<String>>,
    address: Option<mpsc::Sender<String>>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if let Some((address, at)) = address.as_ref().zip(line.strip_prefix("Tollkeeper is on ")) {
                let _ = address.send(at.to_owned());
            }
            let mut said = said.lock().unwrap();
            said.push_str(&line);
            said.push('\n');
        }
    })
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Who asks. Clones are the same caller.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    header: Option<(&'static str, String)>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// The one sentence of an error of `/api`, or of `/v1` in OpenAI's shape.
    pub fn sentence(&self) -> String {
        let error = self.json()["error"].clone();
        let sentence = error.as_str().or_else(|| error["message"].as_str());
        let sentence = sentence.unwrap_or_else(|| panic!("no sentence: {}", self.text)).to_owned();
        assert!(!sentence.trim().is_empty() && !sentence.contains('\n'), "{sentence:?}");
        sentence
    }

    /// A parameter of an item of `RateLimit` or `RateLimit-Policy`.
    pub fn limit(&self, header: &str, item: &str, parameter: &str) -> Option<u64> {
        let value = self.headers.get(header)?.to_str().unwrap();
        let item = value.split(", ").find_map(|part| part.strip_prefix(&format!("\"{item}\";")))?;
        item.split(';').find_map(|part| part.strip_prefix(&format!("{parameter}=")))?.parse().ok()
    }

    /// Name and JSON of each event. OpenAI's have no name; `[DONE]` stays text.
    pub fn events(&self) -> Vec<(String, Value)> {
        events(&self.text)
    }
}

impl Client {
    /// The same caller, asking the site's present server.
    pub fn at(self, site: &Site) -> Self {
        Self { base: site.server().base.clone(), ..self }
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// The API key or the cookie that it sends.
    pub fn secret(&self) -> String {
        let (_, value) = self.header.as_ref().expect("not just anyone");
        value.trim_start_matches("Bearer ").trim_start_matches("tollkeeper=").to_owned()
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().unwrap();
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.header {
            Some((name, value)) => request.header(*name, value),
            None => request,
        }
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        self.try_send(request).await.unwrap()
    }

    pub async fn try_send(&self, request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, text: response.text().await? })
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.with_json("POST", path, body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(self.with_json("PUT", path, body)).await
    }

    pub fn with_json(&self, method: &str, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.request(method, path).header("content-type", "application/json").body(body.to_string())
    }

    // The model routes.

    pub async fn generate(&self) -> Answer {
        self.post("/api/generate", &json!({ "source_id": "sales", "prompt": "Amounts by region" })).await
    }

    pub async fn complete(&self) -> Answer {
        self.send(self.completion(&json!({}))).await
    }

    /// A request of `/v1/chat/completions`, with more in its body.
    pub fn completion(&self, more: &Value) -> reqwest::RequestBuilder {
        let mut body =
            json!({ "model": "default", "messages": [{ "role": "user", "content": "Say something" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.with_json("POST", "/v1/chat/completions", &body)
    }

    pub async fn complete_streamed(&self) -> Answer {
        self.send(self.completion(&json!({ "stream": true }))).await
    }

    pub async fn chat(&self) -> Answer {
        self.post("/api/dashboards/revenue/chat", &turn()).await
    }

    pub async fn chat_streamed(&self) -> Answer {
        self.send(self.chat_request()).await
    }

    pub fn chat_request(&self) -> reqwest::RequestBuilder {
        self.with_json("POST", "/api/dashboards/revenue/chat", &turn()).header("accept", "text/event-stream")
    }

    /// All of these at once.
    pub async fn all<'a, F: Future<Output = Answer>>(
        &'a self,
        count: usize,
        ask: impl Fn(&'a Self) -> F,
    ) -> Vec<Answer> {
        join_all((0..count).map(|_| ask(self))).await
    }
}

fn turn() -> Value {
    json!({ "messages": [{ "role": "user", "content": "What stands out?" }] })
}

/// An answer that is read as it comes.
pub struct Reading {
    response: reqwest::Response,
    pub text: String,
}

impl Reading {
    pub async fn begin(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, text: String::new() }
    }

    /// Reads until this has been read.
    pub async fn up_to(&mut self, wanted: &str) {
        while !self.text.contains(wanted) {
            let piece = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("a piece in time");
            let piece = piece.unwrap().unwrap_or_else(|| panic!("it ended before {wanted}: {}", self.text));
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    pub async fn read_on(mut self) -> Vec<(String, Value)> {
        let mut rest = self.response.bytes_stream();
        while let Some(piece) = rest.next().await {
            self.text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        events(&self.text)
    }
}

fn events(text: &str) -> Vec<(String, Value)> {
    let field = |block: &str, name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    text.split("\n\n")
        .filter_map(|block| {
            let data = field(block, "data:")?;
            let value = serde_json::from_str(&data).unwrap_or(Value::String(data));
            Some((field(block, "event:").unwrap_or_default(), value))
        })
        .collect()
}

/// Asks until there is an answer.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let mut answer = None;
    let came = within(PATIENCE, async || {
        answer = ask().await;
        answer.as_ref().map(|_| ())
    });
    assert!(came.await, "not in time: {what}");
    answer.unwrap()
}

pub async fn within(span: Duration, mut ask: impl AsyncFnMut() -> Option<()>) -> bool {
    let asking = async {
        while ask().await.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(span, asking).await.is_ok()
}

// What the provider says.

/// A whole answer with its usage.
pub fn completion(message: &Value, usage: Option<(u64, u64)>) -> Script {
    let mut body = json!({
        "id": "c1", "object": "chat.completion", "created": 1, "model": "model-1",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
    });
    if let Some((input, output)) = usage {
        body["usage"] = reported(input, output);
    }
    answer(200, &["Content-Type: application/json"], &body.to_string())
}

pub fn words(text: &str, input: u64, output: u64) -> Script {
    completion(&json!({ "role": "assistant", "content": text }), Some((input, output)))
}

pub fn spec() -> Value {
    json!({ "title": "Amounts", "widgets": [
        { "id": "w1", "kind": "bar", "title": "By region",
          "query": { "column": "amount", "aggregate": "sum", "group_by": "region" } },
    ]})
}

/// What `generate` asks for.
pub fn spec_answer(input: u64, output: u64) -> Script {
    words(&spec().to_string(), input, output)
}

/// An answer that asks for a tool.
pub fn tool_call(name: &str, arguments: &Value, input: u64, output: u64) -> Script {
    let call = json!({ "id": "call_1", "type": "function",
                       "function": { "name": name, "arguments": arguments.to_string() } });
    completion(&json!({ "role": "assistant", "content": null, "tool_calls": [call] }), Some((input, output)))
}

fn reported(input: u64, output: u64) -> Value {
    json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output })
}

fn event(value: &Value) -> Act {
    Act::Send(format!("data: {value}\n\n").into_bytes())
}

pub fn piece(text: &str) -> Act {
    event(&json!({ "id": "c1", "object": "chat.completion.chunk", "model": "model-1",
                   "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] }))
}

/// The end of a stream, with its usage.
pub fn last(input: u64, output: u64) -> Vec<Act> {
    vec![
        event(&json!({ "id": "c1", "object": "chat.completion.chunk", "model": "model-1",
                       "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] })),
        event(&json!({ "id": "c1", "object": "chat.completion.chunk", "model": "model-1", "choices": [],
                       "usage": reported(input, output) })),
        Act::Send(b"data: [DONE]\n\n".to_vec()),
        Act::Close,
    ]
}

/// A stream that waits in its middle for what `between` does.
pub fn streamed(first: &str, between: Vec<Act>, end: Vec<Act>) -> Script {
    [stream_head(), piece(first)].into_iter().chain(between).chain(end).collect()
}

/// A stream that asks for a tool.
pub fn streamed_tool_call(name: &str, arguments: &Value, input: u64, output: u64) -> Script {
    let call = json!({ "index": 0, "id": "call_1", "type": "function",
                       "function": { "name": name, "arguments": arguments.to_string() } });
    let delta = json!({ "id": "c1", "object": "chat.completion.chunk", "model": "model-1",
        "choices": [{ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": null }] });
    [stream_head(), event(&delta)].into_iter().chain(last(input, output)).collect()
}
