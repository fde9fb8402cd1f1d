//! A limit as a person sets it in a form: three choices and a text box.

use serde::{Deserialize, Serialize};

use super::Setting;
use super::fmt::{parse_thousands, thousands};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    #[default]
    Inherit,
    Override,
    Disabled,
}

impl Choice {
    pub const ALL: [Choice; 3] = [Choice::Inherit, Choice::Override, Choice::Disabled];

    /// The radio button's value.
    pub fn value(self) -> &'static str {
        match self {
            Choice::Inherit => "inherit",
            Choice::Override => "override",
            Choice::Disabled => "disabled",
        }
    }

    pub fn parse(value: &str) -> Option<Self> {
        Choice::ALL.into_iter().find(|choice| choice.value() == value)
    }
}

/// What the form holds of one limit, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Typed {
    pub choice: Choice,
    /// Counts with [`Choice::Override`] only, and may be anything without it.
    pub number: String,
}

impl Typed {
    pub fn of(setting: Setting) -> Self {
        let (choice, number) = match setting {
            Setting::Inherit => (Choice::Inherit, String::new()),
            Setting::Disabled => (Choice::Disabled, String::new()),
            Setting::Value(n) => (Choice::Override, thousands(n)),
        };
        Self { choice, number }
    }

    /// # Errors
    /// A sentence that says what is accepted.
    pub fn setting(&self, max: u64) -> Result<Setting, String> {
        match self.choice {
            Choice::Inherit => Ok(Setting::Inherit),
            Choice::Disabled => Ok(Setting::Disabled),
            Choice::Override => match parse_thousands(&self.number) {
                Some(n) if (1..=max).contains(&n) => Ok(Setting::Value(n)),
                Some(0) => Err("0 would switch this limit off; to do that, choose Disabled".into()),
                _ => Err(format!("enter a whole number from 1 to {}", thousands(max))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::limit::RATE_MAX;
    use super::*;

    fn override_of(number: &str) -> Typed {
        Typed { choice: Choice::Override, number: number.into() }
    }

    #[test]
    fn a_setting_goes_round() {
        for setting in [Setting::Inherit, Setting::Disabled, Setting::Value(1), Setting::Value(RATE_MAX)] {
            assert_eq!(Typed::of(setting).setting(RATE_MAX), Ok(setting));
        }
    }

    #[test]
    fn numbers_are_taken_as_people_type_them() {
        for text in ["60000", "60,000", " 60 000 ", "60_000"] {
            assert_eq!(override_of(text).setting(RATE_MAX), Ok(Setting::Value(60_000)), "{text}");
        }
    }

    #[test]
    fn what_is_not_accepted_is_answered_with_what_is() {
        for text in ["", "many", "-1", "1.5", "2147483648", "99999999999999999999999"] {
            let fault = override_of(text).setting(RATE_MAX).unwrap_err();
            assert_eq!(fault, "enter a whole number from 1 to 2,147,483,647", "{text}");
        }
        assert!(override_of("0").setting(RATE_MAX).unwrap_err().contains("choose Disabled"));
        let unused = Typed { choice: Choice::Inherit, number: "many".into() };
        assert_eq!(unused.setting(RATE_MAX), Ok(Setting::Inherit), "an unused number doesn't count");
    }
}
