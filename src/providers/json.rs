//! JSON as text: what is passed on keeps its bytes, and what is read is read forgivingly.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A value. Half a surrogate pair, as clients that cut text in the middle of an emoji send it, counts as
/// the replacement character.
pub(super) fn read(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match whole_surrogates(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// The members of an object in their order, each value as its text.
pub(super) fn members(text: &str) -> Result<Vec<(String, &str)>, serde_json::Error> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de str)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                members.push((name, value.get()));
            }
            Ok(members)
        }
    }
    let mut from = serde_json::Deserializer::from_str(text);
    let members = from.deserialize_map(Members)?;
    from.end()?;
    Ok(members)
}

/// Where a part of a text stands in it.
pub(super) fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// An object's text without one of its members; all other bytes stay. As it is where the member isn't there.
pub fn without<'t>(text: &'t str, name: &str) -> Cow<'t, str> {
    let quoted = format!("\"{name}\"");
    if !text.contains(&quoted) {
        return text.into();
    }
    let Ok(members) = members(text) else { return text.into() };
    let Some((_, value)) = members.into_iter().find(|(member, _)| member == name) else { return text.into() };
    let at = range_in(text, value);
    let before = text[..at.start].trim_end().strip_suffix(':').map(str::trim_end);
    // A name that is written with escapes stays.
    let Some(before) = before.and_then(|before| before.strip_suffix(&quoted)) else { return text.into() };
    let after = &text[at.end..];
    if let Some(before) = before.trim_end().strip_suffix(',') {
        return format!("{before}{after}").into();
    }
    let after = after.trim_start();
    format!("{before}{}", after.strip_prefix(',').unwrap_or(after)).into()
}

/// The text with every escaped half of a surrogate pair replaced; nothing where there is none.
fn whole_surrogates(text: &str) -> Option<String> {
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(escape, 16).ok()
    };
    let (mut mended, mut from, mut at) = (String::new(), 0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                mended.push_str(&text[from..at]);
                mended.push_str("\\ufffd");
                at += 6;
                from = at;
            }
            // The escaped character too, or an escaped backslash would count as another escape.
            _ => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    (from > 0).then(|| mended + &text[from..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_no_fault() {
        for (text, means) in [
            (r#""\ud83d\ude00 é""#, "😀 é"),
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00\ud83d\ud83d\ude00""#, "\u{fffd}\u{fffd}😀"),
            (r#""\\\ud83d\\ud83d""#, "\\\u{fffd}\\ud83d"),
        ] {
            assert_eq!(read(text).unwrap(), json!(means), "{text}");
        }
        for bad in [r#""\ud8""#, r#""\"#, r#"{"a":\é"#, "\"\\ud83d"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_member_is_cut_out_and_the_rest_stays() {
        for (text, rest) in [
            (r#"{"id":1.0, "usage" : null , "x":[1e5]}"#, r#"{"id":1.0 , "x":[1e5]}"#),
            (r#"{ "usage":{"a":"}"},"x":1}"#, r#"{ "x":1}"#),
            (r#"{"usage":null}"#, "{}"),
            (r#"{"x":1,"usage":{}}"#, r#"{"x":1}"#),
            (r#"{"x":{"usage":1},"y":"\"usage\":"}"#, r#"{"x":{"usage":1},"y":"\"usage\":"}"#),
            (r#"{"x":"usage"}"#, r#"{"x":"usage"}"#),
            (r#"{"usage":"#, r#"{"usage":"#),
        ] {
            assert_eq!(without(text, "usage"), rest, "{text}");
        }
    }
}
