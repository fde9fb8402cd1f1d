//! The format of `text/event-stream`, taken apart as its bytes arrive.

/// One event: its name (`message` where none is given) and its data.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// Holds what has come of an event that isn't complete yet. A piece may end anywhere, within a character too.
#[derive(Default)]
pub(crate) struct Events {
    held: Vec<u8>,
    name: String,
    data: Vec<String>,
}

impl Events {
    /// The events that this piece completes.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<Event> {
        self.held.extend_from_slice(piece);
        let mut complete = Vec::new();
        while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.held.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            complete.extend(self.line(line.trim_end_matches(['\n', '\r'])));
        }
        complete
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.push(value.to_owned()),
            // Comments keep the connection alive; ids and retry times are of no use here.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        let named = if name.is_empty() { "message".to_owned() } else { name };
        (!data.is_empty()).then(|| Event { name: named, data: data.join("\n") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\n\nevent: delta\ndata: {\"text\":\"grün\"}\n\ndata: a\r\ndata: b\r\n\r\n";

    #[test]
    fn events_are_the_same_however_the_pieces_are_cut() {
        let whole = Events::default().push(STREAM.as_bytes());
        assert_eq!(
            whole,
            [
                Event { name: "delta".into(), data: "{\"text\":\"grün\"}".into() },
                Event { name: "message".into(), data: "a\nb".into() },
            ]
        );
        for size in 1..STREAM.len() {
            let mut events = Events::default();
            let cut: Vec<Event> =
                STREAM.as_bytes().chunks(size).flat_map(|piece| events.push(piece)).collect();
            assert_eq!(cut, whole, "pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_its_empty_line_is_not_complete() {
        assert_eq!(Events::default().push(b"data: cut off\n"), []);
    }
}
