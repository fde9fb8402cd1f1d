//! The pool's stored records: what they take, and their settings as the trail shows them. For everyone who
//! writes them, so that in the trail each `before` is the `after` of the entry before it.

use serde_json::{Map, Value, json};

/// A record's settings. No secret is ever in here.
pub type Settings = Map<String, Value>;

/// The longest provider key, in bytes.
pub const SECRET_MAX: usize = 4_096;

/// A platform's base URL, without the slash at the end, so that paths can be put behind it.
pub fn base_url(text: &str) -> Option<String> {
    let url = reqwest::Url::parse(text).ok()?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let fits = matches!(url.scheme(), "http" | "https") && url.has_host() && plain && text == text.trim();
    fits.then(|| text.trim_end_matches('/').to_owned())
}

/// A provider key that can be sent in a header.
pub fn sendable(text: &str) -> Option<&str> {
    let text = text.trim();
    let fits =
        !text.is_empty() && text.len() <= SECRET_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then_some(text)
}

/// The id of a key that is new. It names the key wherever its usage is counted.
pub fn new_key_id() -> String {
    format!("k_{:032x}", rand::random::<u128>())
}

pub fn platform_settings(id: &str, base_url: &str, position: i64, managed: bool) -> Settings {
    settings(json!({ "platform": id, "base_url": base_url, "position": position, "managed": managed }))
}

pub fn key_settings(platform: &str, label: &str, enabled: bool, position: i64, managed: bool) -> Settings {
    settings(json!({
        "platform": platform, "key": label, "enabled": enabled, "position": position, "managed": managed,
    }))
}

/// `limits` are rpm, rpd, tpm and tpd.
pub fn model_settings(
    platform: &str,
    id: &str,
    alias: &str,
    limits: [Option<i64>; 4],
    priority: i64,
    position: i64,
    managed: bool,
) -> Settings {
    let [rpm, rpd, tpm, tpd] = limits;
    settings(json!({
        "platform": platform, "model": id, "alias": alias, "rpm": rpm, "rpd": rpd, "tpm": tpm, "tpd": tpd,
        "priority": priority, "position": position, "managed": managed,
    }))
}

fn settings(value: Value) -> Settings {
    match value {
        Value::Object(members) => members,
        _ => Settings::default(),
    }
}
