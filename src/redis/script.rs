//! What all scripts have in common: the time, numbers, and the names of keys.

use std::fmt::Write as _;

use redis::Script;

/// Redis's own clock, which all replicas share.
pub(crate) const CLOCK: &str = include_str!("clock.lua");
/// Instead of it in tests: stands where they put it.
#[cfg(test)]
pub(crate) const TEST_CLOCK: &str =
    "local now_us = tonumber(redis.call('GET', 'test-clock') or '5000') * 1000\n";

/// Up to here Lua's numbers are exact.
const EXACT: u64 = 9_007_199_254_740_991;

/// A script that is told the time by `clock`: [`CLOCK`], but for tests.
pub(crate) fn script(clock: &str, parts: &[&str]) -> Script {
    Script::new(&format!("{clock}{}{}", include_str!("numbers.lua"), parts.concat()))
}

/// A number as scripts take it.
pub(crate) fn exact(n: u64) -> u64 {
    n.min(EXACT)
}

/// An id as part of a key's name: no two ids make one name, whatever they hold.
pub(crate) fn escaped(id: &str) -> String {
    id.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"._-@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}
