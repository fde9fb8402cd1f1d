//! What limits are, and the one place that says which applies.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::fmt::thousands;

/// The largest rate, in requests a minute: what a 32-bit column holds.
pub const RATE_MAX: u64 = 2_147_483_647;
/// The largest budget, in tokens a day: what a JSON number holds exactly.
pub const BUDGET_MAX: u64 = 9_007_199_254_740_991;

/// A workspace's own setting for one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Setting {
    /// The environment's value applies.
    #[default]
    Inherit,
    /// No limit.
    Disabled,
    /// This many; never 0.
    Value(u64),
}

impl Setting {
    /// From the form that tables and JSON have: null inherits, 0 disables.
    pub fn from_stored(value: Option<i64>) -> Self {
        match value {
            None => Setting::Inherit,
            // A negative number can't be stored (the table checks it); were it, it would not mean "no limit".
            Some(n) => match u64::try_from(n) {
                Ok(0) => Setting::Disabled,
                Ok(n) => Setting::Value(n),
                Err(_) => Setting::Inherit,
            },
        }
    }

    /// The form that tables and JSON have.
    pub fn stored(self) -> Option<i64> {
        match self {
            Setting::Inherit => None,
            Setting::Disabled => Some(0),
            Setting::Value(n) => Some(i64::try_from(n).unwrap_or(i64::MAX)),
        }
    }

    /// The resolver: what applies, and where it comes from. Enforcement, API, command line and
    /// pages all ask this one function.
    pub fn resolve(self, environment: Limit) -> Effective {
        match self {
            Setting::Inherit => Effective { limit: environment, from: Origin::Environment },
            Setting::Disabled => Effective { limit: Limit::Disabled, from: Origin::Override },
            Setting::Value(n) => Effective { limit: Limit::Of(n), from: Origin::Override },
        }
    }
}

/// A limit in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Disabled,
    /// This many; never 0.
    Of(u64),
}

impl Limit {
    /// From the form in which 0 disables.
    pub fn from_number(n: u64) -> Self {
        if n == 0 { Limit::Disabled } else { Limit::Of(n) }
    }

    /// The form in which 0 means disabled.
    pub fn number(self) -> u64 {
        match self {
            Limit::Disabled => 0,
            Limit::Of(n) => n,
        }
    }

    pub fn value(self) -> Option<u64> {
        match self {
            Limit::Disabled => None,
            Limit::Of(n) => Some(n),
        }
    }
}

/// Where an effective limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Override,
    Environment,
}

/// A limit that applies, with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effective {
    pub limit: Limit,
    pub from: Origin,
}

/// A workspace's own settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    pub rate: Setting,
    pub budget: Setting,
}

/// What the environment sets for every workspace that has no override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// Requests a minute and user.
    pub rate: Limit,
    /// Input and output tokens a workspace and UTC day.
    pub budget: Limit,
}

impl Defaults {
    pub fn resolve(self, overrides: Overrides) -> Limits {
        Limits { rate: overrides.rate.resolve(self.rate), budget: overrides.budget.resolve(self.budget) }
    }
}

/// The two limits of a workspace in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub rate: Effective,
    pub budget: Effective,
}

/// A change of a workspace's settings: `None` leaves a limit as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitChange {
    pub rate: Option<Setting>,
    pub budget: Option<Setting>,
}

impl LimitChange {
    pub fn is_empty(self) -> bool {
        self.rate.is_none() && self.budget.is_none()
    }

    pub fn apply_to(self, now: Overrides) -> Overrides {
        Overrides { rate: self.rate.unwrap_or(now.rate), budget: self.budget.unwrap_or(now.budget) }
    }
}

/// A change by someone who has seen the settings: what they saw, and what they want instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    pub seen: Overrides,
    pub wanted: Overrides,
}

impl Edit {
    /// The change to make to the settings as they are `now`: of what the person didn't touch, none.
    ///
    /// # Errors
    /// The sentence to tell them, where someone else has changed meanwhile what they touched.
    pub fn onto(self, now: Overrides) -> Result<LimitChange, String> {
        let of = |name: &str, seen: Setting, wanted: Setting, now: Setting| match wanted {
            wanted if wanted == seen => Ok(None),
            wanted if now == seen || now == wanted => Ok(Some(wanted)),
            _ => Err(format!(
                "the {name} was changed meanwhile, from {seen} to {now}, and your change to {wanted} was not \
                 saved; look at it again and save again if you still want it"
            )),
        };
        Ok(LimitChange {
            rate: of("rate per user", self.seen.rate, self.wanted.rate, now.rate)?,
            budget: of("daily token budget", self.seen.budget, self.wanted.budget, now.budget)?,
        })
    }
}

/// `inherit`, `disabled` or the number, as sentences have it.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Inherit => f.write_str("inherit"),
            Setting::Disabled => f.write_str("disabled"),
            Setting::Value(n) => f.write_str(&thousands(*n)),
        }
    }
}

/// A limit as a person or a program gives it: a whole number from 0 to `max`, or `inherit`.
///
/// # Errors
/// What is accepted, as the end of a sentence.
pub fn parse_setting(text: &str, max: u64) -> Result<Setting, String> {
    if text.trim() == "inherit" {
        return Ok(Setting::Inherit);
    }
    parse_limit(text, max)
        .map(|limit| match limit {
            Limit::Disabled => Setting::Disabled,
            Limit::Of(n) => Setting::Value(n),
        })
        .map_err(|accepted| format!("{accepted}, or \"inherit\""))
}

/// A limit as the environment gives it: a whole number from 0 to `max`, where 0 disables.
///
/// # Errors
/// What is accepted, as the end of a sentence.
pub fn parse_limit(text: &str, max: u64) -> Result<Limit, String> {
    let digits = text.trim();
    let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match whole.then(|| digits.parse::<u64>()) {
        Some(Ok(n)) if n <= max => Ok(Limit::from_number(n)),
        _ => Err(format!("a whole number from 0 (which disables the limit) to {max}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_goes_round() {
        for setting in [Setting::Inherit, Setting::Disabled, Setting::Value(1), Setting::Value(BUDGET_MAX)] {
            assert_eq!(Setting::from_stored(setting.stored()), setting);
        }
    }

    #[test]
    fn an_override_wins_and_null_inherits() {
        let environment = Limit::Of(20);
        assert_eq!(
            Setting::Inherit.resolve(environment),
            Effective { limit: Limit::Of(20), from: Origin::Environment }
        );
        assert_eq!(
            Setting::Disabled.resolve(environment),
            Effective { limit: Limit::Disabled, from: Origin::Override }
        );
        assert_eq!(
            Setting::Value(5).resolve(environment),
            Effective { limit: Limit::Of(5), from: Origin::Override }
        );
    }

    #[test]
    fn an_edit_overwrites_nothing_unseen() {
        let settings = |rate, budget| Overrides { rate, budget };
        let (inherit, five, six) = (Setting::Inherit, Setting::Value(5), Setting::Value(6_000));
        let edit = Edit { seen: settings(inherit, inherit), wanted: settings(five, inherit) };
        let change = LimitChange { rate: Some(five), budget: None };
        assert_eq!(edit.onto(settings(inherit, inherit)), Ok(change));
        assert_eq!(
            edit.onto(settings(inherit, six)),
            Ok(change),
            "what wasn't touched stays as others set it"
        );
        assert_eq!(edit.onto(settings(five, inherit)), Ok(change), "two who want the same don't disagree");
        let conflict = edit.onto(settings(six, inherit)).unwrap_err();
        assert!(
            conflict.starts_with("the rate per user was changed meanwhile, from inherit to 6,000"),
            "{conflict}"
        );
        let untouched = Edit { seen: settings(five, six), wanted: settings(five, six) };
        assert!(untouched.onto(settings(six, inherit)).unwrap().is_empty());
    }

    #[test]
    fn limits_are_whole_numbers() {
        assert_eq!(parse_limit("0", RATE_MAX), Ok(Limit::Disabled));
        assert_eq!(parse_limit("20", RATE_MAX), Ok(Limit::Of(20)));
        assert_eq!(parse_setting("inherit", RATE_MAX), Ok(Setting::Inherit));
        for bad in ["", "-1", "1.5", "many", "2,000", "+5", "2147483648", "99999999999999999999999"] {
            assert!(parse_limit(bad, RATE_MAX).is_err(), "{bad}");
        }
    }
}
