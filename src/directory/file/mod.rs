//! The directory file (TOML): read and checked by itself, before anything is asked of the database.
//!
//! A fault is `FILE:LINE: sentence` with the line of the value, or of the record where something is
//! missing, and names what is accepted. No sentence repeats a password or a secret.

mod access;
mod definition;
mod platform;
mod reader;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use toml::de::DeTable;

use crate::model::Role;
use crate::model::dashboard::{Column, SourceKind};
use crate::model::ids::{NAME_MAX, is_id, is_name};

pub(super) use reader::At;
use reader::{Faults, Fields};

const ID: &str = "an id: letters, digits and . _ -, 128 at most, the first a letter or digit";

/// A file whose form is right; whether what it refers to exists, `apply` finds out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// As the person who called named it.
    pub(super) name: String,
    pub(super) workspaces: Vec<Workspace>,
    pub(super) users: Vec<User>,
    pub(super) sources: Vec<Source>,
    pub(super) dashboards: Vec<Dashboard>,
    pub(super) platforms: Vec<Platform>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workspace {
    pub id: String,
    pub name: String,
    /// As the table has it: none inherits, 0 disables.
    pub rate: Option<i64>,
    pub budget: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    /// In the form in which addresses are compared.
    pub email: String,
    pub login: Login,
    pub admin: bool,
    pub memberships: Vec<(At<String>, Role)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Login {
    Password(Secret),
    /// An argon2id PHC string.
    Hash(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub id: String,
    pub workspace: At<String>,
    pub name: String,
    pub kind: SourceKind,
    pub columns: Vec<Column>,
    pub rows: Option<Vec<Vec<serde_json::Value>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dashboard {
    pub id: String,
    pub workspace: At<String>,
    pub source: At<String>,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Platform {
    pub id: String,
    pub base_url: String,
    pub keys: Vec<(String, Secret)>,
    pub models: Vec<Model>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Model {
    pub id: String,
    pub alias: String,
    /// rpm, rpd, tpm, tpd; none is unlimited.
    pub limits: [Option<i64>; 4],
    pub priority: i64,
}

/// A password or a provider's key: never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Reads an environment variable, for `secret_env`.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

impl File {
    /// # Errors
    /// What is wrong, in one line that begins with the file's name.
    pub fn read(path: &Path, env: Env<'_>) -> Result<Self, String> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| {
            format!("{name}: the directory file can't be read: {error}; name a TOML file")
        })?;
        Self::from_bytes(&name, &bytes, env)
    }

    /// # Errors
    /// The first fault as `NAME:LINE: sentence`.
    pub fn from_bytes(name: &str, bytes: &[u8], env: Env<'_>) -> Result<Self, String> {
        let mut faults = Faults::new(name, bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                faults.add(error.valid_up_to(), "this line is not UTF-8; save the file as UTF-8 text".into());
                ""
            }
        };
        let root = DeTable::parse(text).unwrap_or_else(|error| {
            let at = error.span().map_or(0, |span| span.start);
            faults.add(at, format!("this is no valid TOML: {}", error.message().replace(['\n', '\r'], " ")));
            toml::Spanned::new(0..0, DeTable::new())
        });
        let root = root.get_ref();
        reader::check_kinds(root, &["workspace", "user", "source", "dashboard", "platform"], &mut faults);

        let workspaces = read_all(root, "workspace", &mut faults, workspace);
        let users = read_all(root, "user", &mut faults, access::user);
        let sources = read_all(root, "source", &mut faults, definition::source);
        let dashboards = read_all(root, "dashboard", &mut faults, definition::dashboard);
        let platforms =
            read_all(root, "platform", &mut faults, |fields, faults| platform::platform(fields, env, faults));

        faults.finish()?;
        Ok(File { name: name.to_owned(), workspaces, users, sources, dashboards, platforms })
    }
}

/// The keys that a kind of record takes.
const fn keys_of(kind: &str) -> &'static [&'static str] {
    match kind.as_bytes() {
        b"workspace" => &["id", "name", "rate_per_minute", "daily_token_budget"],
        b"user" => &["email", "password", "password_hash", "admin", "memberships"],
        b"source" => &["id", "workspace", "name", "kind", "definition"],
        b"dashboard" => &["id", "workspace", "source", "name"],
        _ => &["id", "base_url", "key", "model"],
    }
}

type Read<T> = Option<(T, usize)>;

/// All records of a kind. Each is read to its end even after a fault, so that the first one is found.
fn read_all<'i, T: Named>(
    root: &DeTable<'i>,
    kind: &'static str,
    faults: &mut Faults<'_>,
    read: impl Fn(&Fields<'_, 'i>, &mut Faults<'_>) -> Read<T>,
) -> Vec<T> {
    let mut seen = Seen::default();
    let mut all = Vec::new();
    let elements: Vec<_> = reader::records(root, kind, faults).collect();
    for element in elements {
        let Some(fields) = Fields::of(kind, element, keys_of(kind), faults) else {
            continue;
        };
        if let Some((record, at)) = read(&fields, faults) {
            seen.check(kind, record.own_name(), at, faults);
            all.push(record);
        }
    }
    all
}

/// What tells a record from others of its kind.
trait Named {
    fn own_name(&self) -> &str;
}

macro_rules! named {
    ($($record:ty: $field:ident),*) => {
        $(impl Named for $record { fn own_name(&self) -> &str { &self.$field } })*
    };
}
named!(Workspace: id, User: email, Source: id, Dashboard: id, Platform: id);

/// The names that were there before, with their lines.
#[derive(Default)]
struct Seen(HashMap<String, usize>);

impl Seen {
    fn check(&mut self, what: &str, name: &str, at: usize, faults: &mut Faults<'_>) {
        if let Some(earlier) = self.0.insert(name.to_owned(), at) {
            let line = faults.line(earlier.min(at));
            faults.add(
                earlier.max(at),
                format!("the {what} \"{name}\" is there twice, first in line {line}; keep one"),
            );
        }
    }
}

fn workspace(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Read<Workspace> {
    let id = id(fields, faults);
    let name = name(fields, faults);
    let mut limit = |key, max: u64| {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let accepted =
            format!("a whole number from 0 (which disables the limit) to {max}, or left out to inherit");
        fields.number(key, 0..=max, &accepted, faults)
    };
    let rate = limit("rate_per_minute", crate::model::limit::RATE_MAX);
    let budget = limit("daily_token_budget", crate::model::limit::BUDGET_MAX);
    let (id, at) = id?;
    Some((Workspace { id, name: name?, rate: rate.ok()?, budget: budget.ok()? }, at))
}

fn id(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Read<String> {
    fields.text("id", ID, |text| is_id(text).then(|| text.to_owned()), faults)
}

fn name(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Option<String> {
    let accepted = format!("a text of 1 to {NAME_MAX} characters in one line");
    Some(fields.text("name", &accepted, |text| is_name(text).then(|| text.to_owned()), faults)?.0)
}

/// The id of another record; whether there is one, `apply` checks.
fn reference(key: &str, fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Option<At<String>> {
    let (value, at) = fields.text(key, ID, |text| is_id(text).then(|| text.to_owned()), faults)?;
    Some(At { value, line: faults.line(at) })
}

#[cfg(test)]
mod tests;
