//! Reads server-sent events from bytes as they come: split anywhere, with any of the three line
//! ends, with comments, with or without the blank after the colon.
//!
//! The crates for this buffer without bound, and an upstream that never ends its line must not
//! be able to fill the memory; hence this one.

use std::collections::VecDeque;

/// The longest line, and the longest event of several lines, in bytes.
pub(super) const EVENT_MAX: usize = 1 << 20;

const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The `event` field; empty for the usual, unnamed kind.
    pub(super) name: String,
    /// The `data` lines, joined by line feeds.
    pub(super) data: String,
}

/// A line or an event is longer than [`EVENT_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

#[derive(Debug, Default)]
pub(super) struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// The last byte was a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    past_first_line: bool,
}

impl SseParser {
    /// Takes the next bytes and appends the events that they complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], events: &mut VecDeque<SseEvent>) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() > EVENT_MAX {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { return Ok(()) };
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(events)?;
        }
        Ok(())
    }

    /// The event that the end of the body left without its blank line. The standard drops it, but
    /// providers do end this way, and what they said then still counts.
    pub(super) fn finish(&mut self) -> Option<SseEvent> {
        let mut events = VecDeque::new();
        self.end_line(&mut events).ok()?;
        events.pop_front().or_else(|| self.has_data.then(|| std::mem::take(&mut self.event)))
    }

    fn end_line(&mut self, events: &mut VecDeque<SseEvent>) -> Result<(), TooLong> {
        let bytes = std::mem::take(&mut self.line);
        let mut line = bytes.as_slice();
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                events.push_back(event);
            }
        } else {
            let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
            let (field, value) = line.split_at(colon);
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
            match field {
                b"data" => {
                    if self.event.data.len() + value.len() > EVENT_MAX {
                        return Err(TooLong);
                    }
                    if std::mem::replace(&mut self.has_data, true) {
                        self.event.data.push('\n');
                    }
                    self.event.data.push_str(&value);
                }
                b"event" => self.event.name = value.into_owned(),
                _ => {}
            }
        }
        // The buffer goes on to the next line.
        self.line = bytes;
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(parts: &[&[u8]]) -> Vec<(String, String)> {
        let (mut parser, mut events) = (SseParser::default(), VecDeque::new());
        for part in parts {
            parser.push(part, &mut events).unwrap();
        }
        events.extend(parser.finish());
        events.into_iter().map(|e| (e.name, e.data)).collect()
    }

    fn data(parts: &[&[u8]]) -> Vec<String> {
        parse(parts).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn every_way_to_end_a_line() {
        for text in ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"] {
            assert_eq!(data(&[text.as_bytes()]), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn the_forms_that_providers_send() {
        assert_eq!(data(&[b": keep-alive\n\ndata:a\n\n:\n\n"]), ["a"]);
        assert_eq!(data(&[b"\xef\xbb\xbfdata: a\n\n"]), ["a"]);
        assert_eq!(data(&[b"data: {\ndata:  \"a\": 1}\nid: 7\nretry: 3\n\n"]), ["{\n \"a\": 1}"]);
        assert_eq!(data(&[b"data: a\n\ndata: [DONE]"]), ["a", "[DONE]"]);
        assert_eq!(data(&[b"data: a\n\ndata: [DONE]\n"]), ["a", "[DONE]"]);
        assert_eq!(data(&[b"data\n\nevent: x\n\n"]), [""]);
        assert_eq!(parse(&[b"event: error\ndata: a\n\ndata: b\n\n"])[0], ("error".into(), "a".into()));
        assert_eq!(parse(&[b"event: error\ndata: a\n\ndata: b\n\n"])[1], (String::new(), "b".into()));
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let (mut parser, mut events) = (SseParser::default(), VecDeque::new());
        let piece = vec![b'x'; 1 << 16];
        let pushed = (0..17).filter(|_| parser.push(&piece, &mut events).is_ok()).count();
        assert_eq!(pushed, 16);

        let mut parser = SseParser::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 16], b"\n"].concat();
        let pushed = (0..17).filter(|_| parser.push(&line, &mut events).is_ok()).count();
        assert!(pushed <= 16, "{pushed}");
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_split_makes_no_difference(
            lines in prop::collection::vec(
                prop_oneof![Just(""), Just("data: é漢🦀"), Just("data:x"), Just(": c"), Just("event: e"), Just("data")], 0..12),
            ends in prop::collection::vec(prop_oneof![Just("\n"), Just("\r"), Just("\r\n")], 12),
            cuts in prop::collection::vec(1usize..5, 0..40),
        ) {
            let text: String = lines.iter().zip(&ends).flat_map(|(line, end)| [*line, *end]).collect();
            let whole = parse(&[text.as_bytes()]);
            let (mut parts, mut rest) = (Vec::new(), text.as_bytes());
            for cut in cuts {
                let (part, more) = rest.split_at(cut.min(rest.len()));
                parts.push(part);
                rest = more;
            }
            parts.push(rest);
            prop_assert_eq!(parse(&parts), whole);
        }
    }
}
