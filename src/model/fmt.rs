//! Numbers and spans of time as people read them; the same on the server and in the browser.

/// `2,000,140`
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number as people type it: digits, with thousands separators or blanks between them.
pub fn parse_thousands(text: &str) -> Option<u64> {
    let text = text.trim();
    let plain: String = text.chars().filter(|c| !matches!(c, ',' | ' ' | '\u{a0}' | '_')).collect();
    (!plain.is_empty() && plain.bytes().all(|b| b.is_ascii_digit())).then(|| plain.parse().ok())?
}

/// `1 request`, `20 requests`
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// `9 h 42 min`, `12 min`, `40 s`: the two largest units that matter, rounded up to the last.
pub fn span_ms(ms: u64) -> String {
    let seconds = ms.div_ceil(1000);
    if seconds < 60 {
        return format!("{seconds} s");
    }
    let minutes = seconds.div_ceil(60);
    if minutes < 60 {
        return format!("{minutes} min");
    }
    match (minutes / 60, minutes % 60) {
        (hours, 0) => format!("{hours} h"),
        (hours, rest) => format!("{hours} h {rest} min"),
    }
}

/// How much of `limit` is used, in whole percent, rounded down so that 100 means spent.
pub fn percent(used: u64, limit: u64) -> u64 {
    if limit == 0 {
        return 0;
    }
    u64::try_from(u128::from(used) * 100 / u128::from(limit)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (2_000_140, "2,000,140")] {
            assert_eq!(thousands(n), text);
            assert_eq!(parse_thousands(text), Some(n));
        }
        for bad in ["", "-1", "1.5", "many", "1e3"] {
            assert_eq!(parse_thousands(bad), None, "{bad}");
        }
    }

    #[test]
    fn spans_name_two_units() {
        for (ms, text) in
            [(1, "1 s"), (59_000, "59 s"), (60_001, "2 min"), (3_600_000, "1 h"), (34_920_000, "9 h 42 min")]
        {
            assert_eq!(span_ms(ms), text);
        }
    }

    #[test]
    fn a_hundred_percent_means_spent() {
        assert_eq!(percent(1_999_999, 2_000_000), 99);
        assert_eq!(percent(2_000_000, 2_000_000), 100);
        assert_eq!(percent(u64::MAX, 1), u64::MAX);
    }
}
