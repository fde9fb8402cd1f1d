use super::*;

const GOOD: &str = r#"[[workspace]]
id = "acme"
name = "Acme"
rate_per_minute = 60
daily_token_budget = 0

[[user]]
email = "Ada@Example.com"
password = "at least twelve characters"
admin = true
memberships = [{ workspace = "acme", role = "source-admin" }]

[[source]]
id = "sales"
workspace = "acme"
name = "Sales"
kind = "csv"
definition = { columns = ["day", { name = "amount", type = "number" }], rows = [[2026-01-31, 1_000], ["x", -0.5]] }

[[dashboard]]
id = "revenue"
workspace = "acme"
source = "sales"
name = "Revenue"

[[platform]]
id = "openrouter"
base_url = "https://openrouter.ai/api/v1/"
[[platform.key]]
label = "main"
secret_env = "OPENROUTER_API_KEY"
[[platform.model]]
id = "openai/gpt-4o-mini"
alias = "small"
rpm = 20
[[platform.model]]
id = "openai/gpt-4o:free"
priority = 0
"#;

fn read(text: &str) -> Result<File, String> {
    let env = |name: &str| (name == "OPENROUTER_API_KEY").then(|| "sk-from-env\n".to_owned());
    File::from_bytes("dir.toml", text.as_bytes(), &env)
}

#[test]
fn the_contracts_file_is_read() {
    let file = read(GOOD).unwrap();
    assert_eq!(
        file.workspaces,
        [Workspace { id: "acme".into(), name: "Acme".into(), rate: Some(60), budget: Some(0) }]
    );
    assert_eq!(file.users[0].email, "ada@example.com");
    assert_eq!(file.users[0].memberships, [(At { value: "acme".into(), line: 11 }, Role::SourceAdmin)]);
    let source = &file.sources[0];
    assert_eq!(source.columns[0], Column { name: "day".into(), kind: "text".into() });
    assert_eq!(source.columns[1], Column { name: "amount".into(), kind: "number".into() });
    assert_eq!(
        serde_json::json!(source.rows),
        serde_json::json!([["2026-01-31", 1000], ["x", -0.5]]),
        "a date is its text"
    );
    let platform = &file.platforms[0];
    assert_eq!(platform.base_url, "https://openrouter.ai/api/v1");
    assert_eq!(platform.keys[0].1.reveal(), "sk-from-env");
    assert_eq!(platform.models[0].limits, [Some(20), None, None, None]);
    assert_eq!((platform.models[0].priority, platform.models[1].priority), (1, 0));
    assert_eq!(platform.models[1].alias, "openai/gpt-4o:free");
    let shown = format!("{file:?}");
    assert!(!shown.contains("sk-from-env") && !shown.contains("at least twelve"), "secrets are not shown");
    assert!(read("").unwrap().workspaces.is_empty());
}

/// Replaces one part of the good file by another, which has to be a fault in the line of that part
/// plus `offset`.
fn fault(part: &str, with: &str, offset: usize, word: &str) {
    let at = GOOD.find(part).unwrap_or_else(|| panic!("{part} is in the file"));
    let line = GOOD[..at].matches('\n').count() + 1 + offset;
    let error = read(&GOOD.replacen(part, with, 1)).expect_err(with);
    assert!(error.starts_with(&format!("dir.toml:{line}: ")), "{with}: expected line {line}: {error}");
    assert!(error.contains(word), "{with}: expected {word}: {error}");
    assert!(!error.contains('\n') && !error.contains("hush"), "{error}");
}

#[test]
fn faults_are_told_with_their_line_and_what_is_accepted() {
    let limit = "a whole number from 0";
    for bad in ["-4", "1.5", "\"60\"", "true", "2147483648", "99999999999999999999", "nan", "[60]"] {
        fault("rate_per_minute = 60", &format!("rate_per_minute = {bad}"), 0, limit);
    }
    fault("daily_token_budget = 0", "daily_token_budget = 9007199254740992", 0, limit);
    fault("id = \"acme\"", "id = \"Acme Inc\"", 0, "letters, digits");
    fault("id = \"acme\"", "id = \"a\\u0000\"", 0, "letters, digits");
    fault("id = \"acme\"", "id = 5", 0, "letters, digits");
    fault("[[workspace]]\nid = \"acme\"\n", "[[workspace]]\n", 0, "has no id");
    fault("name = \"Acme\"", "name = \"\"", 0, "1 to 200 characters");
    fault("name = \"Acme\"", "nmae = \"Acme\"", 0, "nmae");
    fault("name = \"Acme\"\n", "name = \"Acme\"\ncolour = \"red\"\n", 1, "colour");
    fault("[[workspace]]\n", "[[workspce]]\n", 0, "workspce");
    fault("[[workspace]]\n", "[workspace]\n", 0, "[[workspace]]");
    fault("[[workspace]]\n", "x = 1\n[[workspace]]\n", 0, "\"x\"");
    fault("[[workspace]]\n", "[[workspace]\n", 0, "TOML");
    fault("id = \"acme\"\n", "id = \"acme\"\nid = \"acme\"\n", 1, "TOML");
    fault(
        "[[user]]",
        "[[workspace]]\nid = \"acme\"\nname = \"Again\"\n[[user]]",
        1,
        "twice, first in line 2",
    );

    fault("Ada@Example.com", "ada", 0, "e-mail");
    fault("at least twelve characters", "hush", 0, "12 to 1,024 characters");
    fault("password = \"at least twelve characters\"", "password_hash = \"hush\"", 0, "argon2id");
    fault(
        "[[user]]\nemail = \"Ada@Example.com\"\npassword = \"at least twelve characters\"",
        "[[user]]\nemail = \"a@b\"",
        0,
        "password_hash",
    );
    let both = format!(
        "password = \"at least twelve characters\"\npassword_hash = \"{}\"",
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzYWx0$X2Jv8d8b3jUDgKUKWdQzZqmuP9s6PYUmbTd4Ov3lZg8"
    );
    fault("password = \"at least twelve characters\"", &both, 1, "not both");
    fault("admin = true", "admin = \"yes\"", 0, "true or false");
    fault("role = \"source-admin\"", "role = \"emperor\"", 0, "emperor");
    fault("role = \"source-admin\"", "rank = \"source-admin\"", 0, "rank");
    fault("memberships = [{", "memberships = [{ workspace = \"acme\", role = \"viewer\" },\n {", 1, "twice");
    fault(
        "memberships = [{ workspace = \"acme\", role = \"source-admin\" }]",
        "memberships = \"acme\"",
        0,
        "a list",
    );
    fault(
        "[[source]]",
        "[[user]]\nemail = \"ADA@example.com\"\npassword = \"long enough for all\"\n[[source]]",
        1,
        "twice",
    );

    fault("kind = \"csv\"", "kind = \"xls\"", 0, "csv, json, postgres");
    fault("columns = [\"day\",", "columns = [5,", 0, "columns");
    fault("columns = [\"day\",", "columns = [\"amount\",", 0, "twice");
    fault("columns = [\"day\",", "colums = [\"day\",", 0, "colums");
    fault("[\"x\", -0.5]", "\n[\"x\"]", 1, "1 values; it needs 2");
    fault("[\"x\", -0.5]", "\n[\"x\",\nnan]", 2, "finite");
    fault("[\"x\", -0.5]", "\n[\"x\", [1]]", 1, "finite");
    let many = vec!["[\"x\", 1]"; INLINE_ROWS].join(",\n");
    fault(
        "[[2026-01-31, 1_000], [\"x\", -0.5]]",
        &format!("[\n{many},\n[1, 2]]"),
        INLINE_ROWS + 1,
        "1000 rows",
    );

    fault("https://openrouter.ai/api/v1/", "ftp://openrouter.ai", 0, "http or https");
    fault("https://openrouter.ai/api/v1/", "openrouter.ai", 0, "http or https");
    fault("https://openrouter.ai/api/v1/", "https://user:hush@openrouter.ai/", 0, "http or https");
    fault("secret_env = \"OPENROUTER_API_KEY\"", "secret_env = \"NOT_SET\"", 0, "NOT_SET is not set");
    fault("secret_env = \"OPENROUTER_API_KEY\"", "secret = \"hush hush\"", 0, "printable ASCII");
    fault("secret_env =", "secret = \"sk-hush\"\nsecret_env =", 1, "not both");
    fault("[[platform.key]]\nlabel = \"main\"", "[[platform.key]]\nlabel = \"\"", 1, "1 to 200");
    fault("alias = \"small\"", "alias = \"so small\"", 0, "letters, digits");
    fault("id = \"openai/gpt-4o-mini\"", "id = \"gpt 4o\"", 0, "without blanks");
    fault("id = \"openai/gpt-4o:free\"", "id = \"openai/gpt-4o-mini\"", 0, "twice");
    for bad in ["0", "-1", "1.5", "\"20\""] {
        fault("rpm = 20", &format!("rpm = {bad}"), 0, "from 1");
    }
    fault("priority = 0", "priority = -1", 0, "from 0");
}

const INLINE_ROWS: usize = crate::model::dashboard::INLINE_ROWS_MAX;

#[test]
fn the_first_fault_is_told() {
    let two = GOOD.replace("kind = \"csv\"", "kind = \"xls\"").replace("priority = 0", "priority = -1");
    assert!(read(&two).unwrap_err().starts_with("dir.toml:17: "));
    let three = two.replace("name = \"Acme\"", "name = \"\"");
    assert!(read(&three).unwrap_err().starts_with("dir.toml:3: "));
}

#[test]
fn what_is_no_text_and_what_is_not_there_name_the_file() {
    let error = File::from_bytes("dir.toml", b"\n\n# \xff\n", &|_| None).unwrap_err();
    assert!(error.starts_with("dir.toml:3: ") && error.contains("UTF-8"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let error = File::read(&folder.path().join("missing.toml"), &|_| None).unwrap_err();
    assert!(error.contains("missing.toml: "), "{error}");
}
