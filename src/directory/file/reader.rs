//! Reading TOML tables with their positions: every fault knows its line, the first of them is told.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// A value and the line that it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At<T> {
    pub value: T,
    pub line: usize,
}

/// Collects what is wrong with a file and keeps the fault that comes first.
pub(super) struct Faults<'a> {
    file: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    first: Option<(usize, String)>,
}

impl<'a> Faults<'a> {
    pub(super) fn new(file: &'a str, text: &[u8]) -> Self {
        let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        Faults { file, lines: std::iter::once(0).chain(breaks).collect(), first: None }
    }

    /// A fault at a byte of the text.
    pub(super) fn add(&mut self, at: usize, sentence: String) {
        if self.first.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
            self.first = Some((at, sentence));
        }
    }

    pub(super) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= at)
    }

    /// The first fault as `FILE:LINE: sentence`.
    pub(super) fn finish(self) -> Result<(), String> {
        match self.first {
            None => Ok(()),
            Some((at, ref sentence)) => Err(format!("{}:{}: {sentence}", self.file, self.line(at))),
        }
    }
}

/// A key as a person wrote it, so that no control character reaches the terminal.
fn shown(key: &str) -> String {
    let short: String = key.chars().take(100).collect();
    format!("\"{}\"", short.escape_debug())
}

/// One table of the file, whose keys are taken one after the other.
pub(super) struct Fields<'t, 'i> {
    /// What the table describes, as the head of a sentence.
    what: &'static str,
    table: &'t DeTable<'i>,
    at: usize,
    /// An unknown key may be a misspelt one: then a missing key is no second fault.
    misspelt: bool,
}

impl<'t, 'i> Fields<'t, 'i> {
    /// Takes the value as a table that has no keys but the accepted ones.
    pub(super) fn of(
        what: &'static str,
        value: &'t Spanned<DeValue<'i>>,
        accepted: &[&str],
        faults: &mut Faults<'_>,
    ) -> Option<Self> {
        let at = value.span().start;
        let Some(table) = value.get_ref().as_table() else {
            faults.add(at, format!("a {what} has to be a table with the keys {}", accepted.join(", ")));
            return None;
        };
        let misspelt = check_keys(what, table, accepted, faults);
        Some(Fields { what, table, at, misspelt })
    }

    /// Where the table begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn optional(&self, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.table.get(key)
    }

    pub(super) fn required(
        &self,
        key: &str,
        accepted: &str,
        faults: &mut Faults<'_>,
    ) -> Option<&'t Spanned<DeValue<'i>>> {
        let value = self.optional(key);
        if value.is_none() && !self.misspelt {
            faults.add(self.at, format!("this {} has no {key}; it has to be {accepted}", self.what));
        }
        value
    }

    /// A required text that `accept` makes something of; `accepted` says in words what it takes.
    pub(super) fn text<T>(
        &self,
        key: &str,
        accepted: &str,
        accept: impl FnOnce(&str) -> Option<T>,
        faults: &mut Faults<'_>,
    ) -> Option<(T, usize)> {
        let value = self.required(key, accepted, faults)?;
        self.text_in(key, value, accepted, accept, faults)
    }

    /// A text that may be left out; `Err` where it is there and not accepted.
    pub(super) fn optional_text<T>(
        &self,
        key: &str,
        accepted: &str,
        accept: impl FnOnce(&str) -> Option<T>,
        faults: &mut Faults<'_>,
    ) -> Result<Option<(T, usize)>, ()> {
        match self.optional(key) {
            None => Ok(None),
            Some(value) => self.text_in(key, value, accepted, accept, faults).map(Some).ok_or(()),
        }
    }

    fn text_in<T>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'i>>,
        accepted: &str,
        accept: impl FnOnce(&str) -> Option<T>,
        faults: &mut Faults<'_>,
    ) -> Option<(T, usize)> {
        let at = value.span().start;
        let taken = value.get_ref().as_str().and_then(accept);
        if taken.is_none() {
            faults.add(at, format!("the {key} of this {} has to be {accepted}", self.what));
        }
        taken.map(|taken| (taken, at))
    }

    /// A whole number of `range` that may be left out; `Err` where it is there and not accepted.
    pub(super) fn number(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<i64>,
        accepted: &str,
        faults: &mut Faults<'_>,
    ) -> Result<Option<i64>, ()> {
        let Some(value) = self.optional(key) else {
            return Ok(None);
        };
        let number = value.get_ref().as_integer().and_then(integer).filter(|n| range.contains(n));
        if number.is_none() {
            faults.add(value.span().start, format!("the {key} of this {} has to be {accepted}", self.what));
        }
        number.map(Some).ok_or(())
    }

    /// `true` or `false`, `false` where it is left out.
    pub(super) fn flag(&self, key: &str, faults: &mut Faults<'_>) -> Option<bool> {
        let Some(value) = self.optional(key) else {
            return Some(false);
        };
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            faults
                .add(value.span().start, format!("the {key} of this {} has to be true or false", self.what));
        }
        flag
    }

    /// The elements of an array that may be left out.
    pub(super) fn array(
        &self,
        key: &str,
        accepted: &str,
        faults: &mut Faults<'_>,
    ) -> impl Iterator<Item = &'t Spanned<DeValue<'i>>> + use<'t, 'i> {
        let elements = self.optional(key).and_then(|value| {
            let elements = value.get_ref().as_array();
            if elements.is_none() {
                faults.add(value.span().start, format!("{key} has to be {accepted}"));
            }
            elements
        });
        elements.into_iter().flat_map(|array| array.iter())
    }
}

/// Whether there is a key that isn't accepted.
fn check_keys(what: &str, table: &DeTable<'_>, accepted: &[&str], faults: &mut Faults<'_>) -> bool {
    let mut unknown = false;
    for key in table.keys().filter(|key| !accepted.contains(&key.get_ref().as_ref())) {
        unknown = true;
        let said = format!(
            "{} is no key of a {what}; the keys are {}",
            shown(key.get_ref().as_ref()),
            accepted.join(", ")
        );
        faults.add(key.span().start, said);
    }
    unknown
}

/// The file's own table: it holds arrays of tables and nothing else.
pub(super) fn records<'t, 'i>(
    root: &'t DeTable<'i>,
    kind: &str,
    faults: &mut Faults<'_>,
) -> impl Iterator<Item = &'t Spanned<DeValue<'i>>> + use<'t, 'i> {
    let elements = root.get_key_value(kind).and_then(|(key, value)| {
        let elements = value.get_ref().as_array();
        if elements.is_none() {
            faults.add(earliest(key.span(), value.span()), format!("write [[{kind}]], once for each {kind}"));
        }
        elements
    });
    elements.into_iter().flat_map(|array| array.iter())
}

/// Tells of the tables of the file that none of the kinds.
pub(super) fn check_kinds(root: &DeTable<'_>, kinds: &[&str], faults: &mut Faults<'_>) {
    check_keys("directory file", root, kinds, faults);
}

fn earliest(key: Range<usize>, value: Range<usize>) -> usize {
    key.start.min(value.start)
}

pub(super) fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}
