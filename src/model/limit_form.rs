//! Limits as a person sets them in a form: for each three choices and a text box.

use super::fmt::{parse_thousands, thousands};
use super::limit::{BUDGET_MAX, Edit, Overrides, RATE_MAX, parse_setting};
use super::{Error, Setting};

/// The longest number that is kept as typed, in characters.
pub const NUMBER_MAX: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// The whole form, with the settings that it was filled in over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsForm {
    pub seen: Overrides,
    pub rate: Typed,
    pub budget: Typed,
}

/// What is wrong with a form, a sentence for each limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults {
    pub rate: Option<String>,
    pub budget: Option<String>,
}

impl LimitsForm {
    /// From the values that a browser sends: each limit's choice, number, and what it was.
    ///
    /// # Errors
    /// `Malformed` for what no browser sends.
    pub fn read(
        rate: &str,
        rate_number: &str,
        rate_seen: &str,
        budget: &str,
        budget_number: &str,
        budget_seen: &str,
    ) -> Result<Self, Error> {
        let fault = || Error::Malformed("the form is incomplete; reload the page and try again".into());
        let seen = |text: &str, max| parse_setting(text, max).map_err(|_| fault());
        let typed = |choice: &str, number: &str| {
            let choice = Choice::parse(choice).ok_or_else(fault)?;
            Ok::<_, Error>(Typed { choice, number: number.chars().take(NUMBER_MAX).collect() })
        };
        Ok(Self {
            seen: Overrides { rate: seen(rate_seen, RATE_MAX)?, budget: seen(budget_seen, BUDGET_MAX)? },
            rate: typed(rate, rate_number)?,
            budget: typed(budget, budget_number)?,
        })
    }

    pub fn of(seen: Overrides) -> Self {
        Self { seen, rate: Typed::of(seen.rate), budget: Typed::of(seen.budget) }
    }

    /// # Errors
    /// What is wrong with which limit.
    pub fn edit(&self) -> Result<Edit, Faults> {
        match (self.rate.setting(RATE_MAX), self.budget.setting(BUDGET_MAX)) {
            (Ok(rate), Ok(budget)) => Ok(Edit { seen: self.seen, wanted: Overrides { rate, budget } }),
            (rate, budget) => Err(Faults { rate: rate.err(), budget: budget.err() }),
        }
    }
}

impl From<Faults> for Error {
    fn from(faults: Faults) -> Self {
        let named = |name: &str, fault: Option<String>| fault.map(|fault| format!("{name}: {fault}"));
        let all = [named("requests per minute", faults.rate), named("tokens per day", faults.budget)];
        Error::Invalid(all.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn what_no_browser_sends_is_malformed() {
        let read =
            |rate, seen| LimitsForm::read(rate, "5", seen, "disabled", "", "5000").map_err(|e| e.status());
        let form = read("override", "inherit").unwrap();
        assert_eq!((form.rate, form.seen.budget), (override_of("5"), Setting::Value(5_000)));
        for (rate, seen) in [("", "inherit"), ("Override", "inherit"), ("override", ""), ("override", "-1")] {
            assert_eq!(read(rate, seen), Err(400), "{rate} {seen}");
        }
    }

    #[test]
    fn a_form_is_an_edit_or_says_which_limit_is_wrong() {
        let seen = Overrides { rate: Setting::Inherit, budget: Setting::Value(5_000) };
        let form = LimitsForm { rate: override_of("60"), ..LimitsForm::of(seen) };
        let wanted = Overrides { rate: Setting::Value(60), ..seen };
        assert_eq!(form.edit(), Ok(Edit { seen, wanted }));
        let faults = LimitsForm { rate: override_of("x"), ..form }.edit().unwrap_err();
        assert!(faults.rate.is_some() && faults.budget.is_none());
        assert_eq!(
            Error::from(faults).to_string(),
            "requests per minute: enter a whole number from 1 to 2,147,483,647"
        );
    }
}
