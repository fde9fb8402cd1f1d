//! What a form that was sent without script leaves in the page's address: what was saved, or what was typed.
//! From the latter the page finds out again what is wrong with it, so that no link can put words into it.

use leptos_router::params::ParamsMap;
use tollkeeper::model::Setting;
use tollkeeper::model::limit_form::LimitsForm;
use tollkeeper::model::reports::AuditLine;

#[cfg(feature = "ssr")]
pub(crate) fn saved_path(workspace: &str, line: Option<&AuditLine>) -> String {
    format!("{}?saved={}", path(workspace), line.map_or(0, |line| line.id))
}

/// What was saved just now, as the page tells it.
#[derive(Clone)]
pub(super) enum Saved {
    Changed(AuditLine),
    /// Nothing was different.
    Same,
}

pub(super) fn saved(query: &ParamsMap, newest: &[AuditLine]) -> Option<Saved> {
    let id: i64 = query.get_str("saved")?.parse().ok()?;
    Some(newest.iter().find(|line| line.id == id).cloned().map_or(Saved::Same, Saved::Changed))
}

#[cfg(feature = "ssr")]
pub(crate) fn typed_path(workspace: &str, form: &LimitsForm) -> String {
    let mut query = ParamsMap::new();
    for (name, value) in [
        ("rate", form.rate.choice.value().to_owned()),
        ("rate_number", form.rate.number.clone()),
        ("rate_seen", stored(form.seen.rate)),
        ("budget", form.budget.choice.value().to_owned()),
        ("budget_number", form.budget.number.clone()),
        ("budget_seen", stored(form.seen.budget)),
    ] {
        query.insert(name, value);
    }
    format!("{}{}", path(workspace), query.to_query_string())
}

pub(super) fn typed_form(query: &ParamsMap) -> Option<LimitsForm> {
    let of = |name: &str| query.get_str(name).unwrap_or_default();
    LimitsForm::read(
        of("rate"),
        of("rate_number"),
        of("rate_seen"),
        of("budget"),
        of("budget_number"),
        of("budget_seen"),
    )
    .ok()
}

/// The setting as a form carries it.
pub(super) fn stored(setting: Setting) -> String {
    setting.stored().map_or_else(|| "inherit".to_owned(), |number| number.to_string())
}

/// Ids need no escaping.
#[cfg(feature = "ssr")]
fn path(workspace: &str) -> String {
    format!("/settings/workspaces/{workspace}")
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use leptos_router::location::Url;
    use tollkeeper::model::limit::Overrides;
    use tollkeeper::model::limit_form::{Choice, Typed};

    use super::*;

    #[test]
    fn what_was_typed_comes_back() {
        let form = LimitsForm {
            seen: Overrides { rate: Setting::Disabled, budget: Setting::Value(5_000) },
            rate: Typed { choice: Choice::Override, number: "2,0 & \"x\"=<é>".into() },
            budget: Typed { choice: Choice::Inherit, number: String::new() },
        };
        let unescape = |text: &str| Url::unescape(text);
        let path = typed_path("acme", &form);
        let (page, query) = path.split_once('?').unwrap();
        assert_eq!(page, "/settings/workspaces/acme");
        let query: ParamsMap = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (unescape(name), unescape(value)))
            .collect();
        assert_eq!(typed_form(&query), Some(form));
        assert_eq!(typed_form(&ParamsMap::new()), None);
    }
}
