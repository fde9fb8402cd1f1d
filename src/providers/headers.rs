//! What a provider's headers say about its limits and about when to come back.

use http::{HeaderMap, header};

use crate::model::Timestamp;

/// Nothing is believed that puts a candidate away for longer than this.
const LONGEST_MS: u64 = 31 * 86_400_000;

/// `x-ratelimit-limit-*`, `x-ratelimit-remaining-*` and `x-ratelimit-reset-*`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitHeaders {
    pub requests: WindowHeaders,
    pub tokens: WindowHeaders,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowHeaders {
    pub limit: Option<u64>,
    pub remaining: Option<u64>,
    /// Milliseconds until the window is whole again.
    pub reset_ms: Option<u64>,
}

impl LimitHeaders {
    pub(super) fn read(headers: &HeaderMap, now: Timestamp) -> Self {
        let now = server_time(headers).unwrap_or(now);
        Self { requests: window(headers, "-requests", now), tokens: window(headers, "-tokens", now) }
    }
}

/// `retry-after-ms`, or `Retry-After` in seconds or as a date, in milliseconds.
pub(super) fn retry_after_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    if let Some(ms) = text(headers, "retry-after-ms").and_then(|t| t.parse::<f64>().ok()).and_then(to_ms) {
        return Some(ms);
    }
    let value = text(headers, "retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return to_ms(seconds * 1000.0);
    }
    let now = server_time(headers).unwrap_or(now);
    http_date(value).map(|at| at.ms_since(now).min(LONGEST_MS))
}

/// How long until the provider's windows are open again: the latest of those that it says are
/// spent, else the latest of all, so that a burst of tokens doesn't wait for the day's requests.
pub(super) fn reset_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let now = server_time(headers).unwrap_or(now);
    let named: Vec<WindowHeaders> =
        ["-requests", "-tokens", ""].map(|kind| window(headers, kind, now)).into();
    let spent = named.iter().filter(|w| w.remaining == Some(0)).filter_map(|w| w.reset_ms).max();
    spent.or_else(|| named.iter().filter_map(|w| w.reset_ms).max())
}

fn window(headers: &HeaderMap, kind: &str, now: Timestamp) -> WindowHeaders {
    let value = |what: &str| text(headers, &format!("x-ratelimit-{what}{kind}"));
    WindowHeaders {
        limit: value("limit").and_then(whole),
        remaining: value("remaining").and_then(whole),
        reset_ms: value("reset").and_then(|text| moment_ms(text, now)),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Providers write `30`, `30.0` and `30, 30;window=60`.
fn whole(text: &str) -> Option<u64> {
    let first = text.split([',', ';', '.']).next()?.trim();
    first.parse().ok()
}

/// The provider's own idea of the time, so that its dates need no agreement of clocks.
fn server_time(headers: &HeaderMap) -> Option<Timestamp> {
    http_date(text(headers, header::DATE.as_str())?)
}

fn http_date(text: &str) -> Option<Timestamp> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp)
}

/// A span (`1s`, `6m0s`, `200ms`, plain seconds) or an instant (RFC 3339, Unix time), as milliseconds from now.
fn moment_ms(text: &str, now: Timestamp) -> Option<u64> {
    if let Ok(number) = text.parse::<f64>() {
        // No span is that long: the number is an instant, in seconds or in milliseconds.
        let instant_ms = if number >= 1e12 {
            number
        } else if number >= 1e9 {
            number * 1000.0
        } else {
            return to_ms(number * 1000.0);
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast of f64 saturates, and then ms_since does"
        )]
        return Some(Timestamp(instant_ms as i64).ms_since(now).min(LONGEST_MS));
    }
    go_duration_ms(text)
        .or_else(|| Timestamp::parse_rfc3339(text).map(|at| at.ms_since(now).min(LONGEST_MS)))
        .or_else(|| http_date(text).map(|at| at.ms_since(now).min(LONGEST_MS)))
}

/// `1h2m3.5s` as Go prints a duration.
pub(super) fn go_duration_ms(text: &str) -> Option<u64> {
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..digits].parse().ok()?;
        let after = &rest[digits..];
        let unit_len = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let unit_ms = match &after[..unit_len] {
            "d" => 86_400_000.0,
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1_000.0,
            "ms" => 1.0,
            "us" | "µs" | "μs" => 1e-3,
            "ns" => 1e-6,
            _ => return None,
        };
        sum += number * unit_ms;
        rest = &after[unit_len..];
    }
    if text.is_empty() { None } else { to_ms(sum) }
}

/// Rounded up; nothing for what is no span.
fn to_ms(ms: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "finite, at least 0, and saturating"
    )]
    (ms.is_finite() && ms >= 0.0).then(|| (ms.ceil() as u64).min(LONGEST_MS))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs.iter().map(|(n, v)| (n.parse::<HeaderName>().unwrap(), v.parse().unwrap())).collect()
    }

    fn now() -> Timestamp {
        Timestamp::parse_rfc3339("2026-09-20T10:00:00Z").unwrap()
    }

    #[test]
    fn retry_after_in_all_its_forms() {
        for (pairs, ms) in [
            (&[("retry-after", "3")][..], Some(3_000)),
            (&[("retry-after", " 0 ")], Some(0)),
            (&[("retry-after", "1.5")], Some(1_500)),
            (&[("retry-after", "9"), ("retry-after-ms", "250.5")], Some(251)),
            (&[("retry-after", "Sun, 20 Sep 2026 10:00:07 GMT")], Some(7_000)),
            (&[("retry-after", "Sun, 20 Sep 2026 09:00:07 GMT")], Some(0)),
            // The provider's clock is an hour behind ours, and its date is meant by its own clock.
            (
                &[
                    ("date", "Sun, 20 Sep 2026 09:00:00 GMT"),
                    ("retry-after", "Sun, 20 Sep 2026 09:00:07 GMT"),
                ],
                Some(7_000),
            ),
            (&[("retry-after", "99999999999999999999")], Some(LONGEST_MS)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "NaN")], None),
            (&[], None),
        ] {
            assert_eq!(retry_after_ms(&headers(pairs), now()), ms, "{pairs:?}");
        }
    }

    #[test]
    fn resets_in_all_their_forms() {
        for (text, ms) in [
            ("1s", Some(1_000)),
            ("6m0s", Some(360_000)),
            ("1h2m3.5s", Some(3_723_500)),
            ("200ms", Some(200)),
            ("7.66s", Some(7_660)),
            ("1d", Some(86_400_000)),
            ("12", Some(12_000)),
            ("0.25", Some(250)),
            ("2026-09-20T10:00:09Z", Some(9_000)),
            ("2026-09-20T12:00:09+02:00", Some(9_000)),
            ("1789898405", Some(5_000)),
            ("1789898405500", Some(5_500)),
            ("", None),
            ("5", Some(5_000)),
            ("5x", None),
            ("tomorrow", None),
        ] {
            assert_eq!(moment_ms(text, now()), ms, "{text}");
        }
    }

    #[test]
    fn a_spent_window_decides_over_one_with_room() {
        let both = [("x-ratelimit-reset-requests", "23h"), ("x-ratelimit-reset-tokens", "7s")];
        assert_eq!(reset_ms(&headers(&both), now()), Some(23 * 3_600_000), "neither says that it is spent");
        let spent =
            [&both[..], &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-remaining-requests", "40")]]
                .concat();
        assert_eq!(reset_ms(&headers(&spent), now()), Some(7_000));
        assert_eq!(reset_ms(&headers(&[]), now()), None);
    }

    #[test]
    fn limits_are_read_where_they_are_said() {
        let read = LimitHeaders::read(
            &headers(&[
                ("x-ratelimit-limit-requests", "14400"),
                ("x-ratelimit-remaining-requests", "14370"),
                ("x-ratelimit-limit-tokens", "18000.0"),
                ("x-ratelimit-remaining-tokens", "many"),
                ("x-ratelimit-reset-tokens", "7.66s"),
            ]),
            now(),
        );
        let requests = WindowHeaders { limit: Some(14_400), remaining: Some(14_370), reset_ms: None };
        let tokens = WindowHeaders { limit: Some(18_000), remaining: None, reset_ms: Some(7_660) };
        assert_eq!(read, LimitHeaders { requests, tokens });
    }
}
