/// `text`, if as an address it stays on this site: browsers take `//host` and `/\host` for another one, and drop
/// tabs and line breaks before they look.
pub(crate) fn local_path(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    let local = chars.next() == Some('/')
        && !matches!(chars.next(), Some('/' | '\\'))
        && text.len() <= 2_000
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    local.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_site() {
        for good in ["/", "/settings/workspaces?page=2&search=a%20b", "/a//b"] {
            assert_eq!(local_path(good), Some(good));
        }
        for bad in [
            "",
            "a",
            "//evil.example",
            "/\\evil.example",
            "\\/evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            " /",
            "/ü",
        ] {
            assert_eq!(local_path(bad), None, "{bad}");
        }
    }
}
