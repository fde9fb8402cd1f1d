//! Instants and UTC days as plain numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

const RFC3339_MS: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
const YMD: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");
const MINUTE: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day] [hour]:[minute]");
const MONTH_DAY: &[BorrowedFormatItem<'_>] = format_description!("[month repr:short] [day padding:none]");
const MS_PER_DAY: i64 = 86_400_000;

/// Unix time in milliseconds, UTC. JSON has it as RFC 3339 with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn from_ms(ms: i64) -> Self {
        Timestamp(ms)
    }

    pub fn ms(self) -> i64 {
        self.0
    }

    pub fn plus_ms(self, ms: i64) -> Self {
        Timestamp(self.0.saturating_add(ms))
    }

    /// Milliseconds since `earlier`; 0 where the clock was set back.
    pub fn ms_since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    pub fn day(self) -> Day {
        Day(self.0.div_euclid(MS_PER_DAY))
    }

    /// `2026-09-20T10:00:03.000Z`
    pub fn rfc3339(self) -> String {
        self.date_time().format(RFC3339_MS).unwrap_or_default()
    }

    /// `2026-09-20 10:00`, UTC, as pages show it.
    pub fn minute(self) -> String {
        self.date_time().format(MINUTE).unwrap_or_default()
    }

    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let at = OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok()?;
        i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).ok().map(Timestamp)
    }

    fn date_time(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Timestamp::parse_rfc3339(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 time"))
    }
}

/// A UTC day, as days since 1970-01-01. Tables and JSON have it as `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    /// 00:00 UTC of this day.
    pub fn start(self) -> Timestamp {
        Timestamp(self.0 * MS_PER_DAY)
    }

    /// 00:00 UTC of the day after, when this day's budget begins anew.
    pub fn end(self) -> Timestamp {
        Timestamp((self.0 + 1) * MS_PER_DAY)
    }

    pub fn plus(self, days: i64) -> Day {
        Day(self.0.saturating_add(days))
    }

    pub fn ymd(self) -> String {
        self.start().date_time().format(YMD).unwrap_or_default()
    }

    /// `Sep 20`
    pub fn month_day(self) -> String {
        self.start().date_time().format(MONTH_DAY).unwrap_or_default()
    }

    pub fn parse(text: &str) -> Option<Day> {
        let date = time::Date::parse(text, YMD).ok()?;
        Some(Day(date.midnight().assume_utc().unix_timestamp().div_euclid(86_400)))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ymd())
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.ymd())
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Day::parse(&text).ok_or_else(|| serde::de::Error::custom("not a day of the form YYYY-MM-DD"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc3339_with_milliseconds() {
        let at = Timestamp::parse_rfc3339("2026-09-20T10:00:03Z").unwrap();
        assert_eq!(at.rfc3339(), "2026-09-20T10:00:03.000Z");
        assert_eq!(Timestamp(at.0 + 7).rfc3339(), "2026-09-20T10:00:03.007Z");
        assert_eq!(
            (at.minute(), Day::parse("2026-09-02").unwrap().month_day()),
            ("2026-09-20 10:00".into(), "Sep 2".into())
        );
    }

    #[test]
    fn days_are_utc_days() {
        let day = Day::parse("2026-02-28").unwrap();
        assert_eq!(day.plus(1).ymd(), "2026-03-01");
        assert_eq!(Timestamp(day.end().0 - 1).day(), day);
        assert_eq!(day.end().day(), day.plus(1));
        assert_eq!(Timestamp(-1).day(), Day(-1));
        assert_eq!(Day::parse("2026-2-28"), None);
        assert_eq!(Day::parse("2026-02-30"), None);
    }
}
