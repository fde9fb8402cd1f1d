//! Reads an upstream's body: whole within bounds, or as the pieces of a stream.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::assembly::Assembly;
use super::completion::{self, ToolIndex};
use super::responses::{self, Told};
use super::sse::{SseEvent, SseParser};
use super::upstream::Tally;
use super::{Event, Events, Failure, Operation, Piece, fault, json};
use crate::ledger::StepUsage;

/// Bytes of a body; an error is a connection that broke.
pub(super) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, ()>> + Send>>;

/// The largest whole answer, in bytes.
const WHOLE_MAX: usize = 32 << 20;
/// What may come before the first piece that says something, in bytes.
const PRELUDE_MAX: usize = 1 << 20;
/// After `finish_reason` only the usage and `[DONE]` can follow; some providers send neither and don't hang up.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// How long a connection is read on after `[DONE]`, so that it can be used again.
const DRAIN: Duration = Duration::from_secs(1);
/// Choices of one answer that are told apart.
const CHOICES_MAX: u64 = 1024;

const SILENT: &str = "the model's answer broke off: the provider fell silent; try again";
const LOST: &str = "the model's answer broke off: the connection to the provider was lost; try again";
const FAULTY: &str = "the model's answer broke off: the provider reported a failure; try again";
const UNREADABLE: &str = "the model's answer broke off: what the provider sent can't be read; try again";

/// The rest of a body, once its first byte that isn't blank has come: all bytes so far and that byte. Each part has
/// to come by what `deadline` is then.
pub(super) async fn first_byte(
    body: &mut Body,
    deadline: impl Fn() -> Instant,
) -> Result<(Bytes, u8), Failure> {
    const BLANK: &[u8] = b" \t\r\n\xef\xbb\xbf";
    let mut begun = Vec::new();
    loop {
        let bytes = next(body, deadline()).await?.ok_or(Failure::Connection)?;
        begun.extend_from_slice(&bytes);
        if let Some(first) = begun.iter().find(|b| !BLANK.contains(b)) {
            let first = *first;
            return Ok((begun.into(), first));
        }
        if begun.len() > PRELUDE_MAX {
            return Err(Failure::Garbled("nothing but blanks"));
        }
    }
}

/// A whole body as JSON, and its text.
pub(super) async fn whole(body: &mut Body, begun: Bytes, idle: Duration) -> Result<(Value, Bytes), Failure> {
    const NO_JSON: Failure = Failure::Garbled("an answer that is no JSON");
    let bytes = Bytes::from(collect(body, begun, idle, WHOLE_MAX).await?);
    let bytes = if bytes.starts_with(b"\xef\xbb\xbf") { bytes.slice(3..) } else { bytes };
    let text = std::str::from_utf8(&bytes).map_err(|_| NO_JSON)?;
    let value = json::read(text).map_err(|error| {
        // Without a length the end of a cut body looks like any other.
        let cut = error.is_eof() && !text.is_empty();
        if cut { Failure::Connection } else { NO_JSON }
    })?;
    Ok((value, bytes))
}

/// At most `max` bytes of a body, each part of it within `idle`.
pub(super) async fn collect(
    body: &mut Body,
    begun: Bytes,
    idle: Duration,
    max: usize,
) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::from(begun);
    while let Some(bytes) = next(body, Instant::now() + idle).await? {
        if all.len() + bytes.len() > max {
            return Err(Failure::Garbled("an answer that is too large"));
        }
        all.extend_from_slice(&bytes);
    }
    Ok(all)
}

async fn next(body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, Failure> {
    match timeout_at(deadline, body.next()).await {
        Err(_) => Err(Failure::Timeout),
        Ok(Some(Err(()))) => Err(Failure::Connection),
        Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
        Ok(None) => Ok(None),
    }
}

/// A stream that a whole answer was turned into.
pub(super) fn events_of_whole(operation: Operation, whole: &Value, tally: &Tally) -> Events {
    let pieces = match operation {
        Operation::Responses => responses::pieces_of(whole),
        Operation::Chat | Operation::Embeddings => completion::pieces_of(whole),
    };
    let pieces = pieces.into_iter().map(Event::Piece);
    Box::pin(futures::stream::iter(pieces.chain([Event::End(tally.step())])))
}

/// A stream that came where a whole answer was asked for, put together.
pub(super) async fn whole_of_events(
    operation: Operation,
    mut events: Events,
) -> Result<(Value, StepUsage), Failure> {
    let (mut whole, mut response) = (Assembly::default(), Value::Null);
    let mut size = 0;
    while let Some(event) = events.next().await {
        match event {
            Event::Piece(piece) => {
                size += piece.data.len();
                if size > WHOLE_MAX {
                    return Err(Failure::Garbled("an answer that is too large"));
                }
                let mut object = json::read(&piece.data).unwrap_or_default();
                match operation {
                    // The last event has all of it.
                    Operation::Responses => response = object["response"].take(),
                    Operation::Chat | Operation::Embeddings => whole.add(&object),
                }
            }
            Event::End(step) => {
                let whole = if operation == Operation::Responses { response } else { whole.completion() };
                return Ok((whole, step));
            }
            Event::Cut { .. } => return Err(Failure::Connection),
        }
    }
    Err(Failure::Connection)
}

/// Waits for the first piece that says something; what went before it is held back and passed on with it.
pub(super) async fn events_of_stream(
    operation: Operation,
    body: Body,
    begun: Bytes,
    deadline: Instant,
    idle: Duration,
    tally: Tally,
    key: Option<&str>,
) -> Result<Events, Failure> {
    let mut reader = Reader {
        operation,
        body,
        parser: SseParser::default(),
        events: VecDeque::new(),
        held: VecDeque::new(),
        over: None,
        tools: ToolIndex::default(),
        open: BTreeSet::new(),
        any_finished: false,
        idle,
        tally,
    };
    reader.feed(&begun);
    reader.begin(deadline, key).await?;
    Ok(Box::pin(futures::stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        let event = reader.event().await;
        let more = matches!(event, Event::Piece(_)).then_some(reader);
        Some((event, more))
    })))
}

struct Reader {
    operation: Operation,
    body: Body,
    parser: SseParser,
    /// Events that have come and were not looked at yet.
    events: VecDeque<SseEvent>,
    /// Pieces from before the stream counted as begun, and the one that began it.
    held: VecDeque<Piece>,
    /// Set when no more bytes will come; the events above still count.
    over: Option<Over>,
    tools: ToolIndex,
    /// Choices that have begun and not finished.
    open: BTreeSet<u64>,
    any_finished: bool,
    idle: Duration,
    tally: Tally,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Closed,
    Broken,
    TooLong,
}

enum Step {
    Piece {
        piece: Piece,
        speaks: bool,
    },
    /// `[DONE]`
    Done,
    /// The provider's error object.
    Error(Value),
    Unreadable,
    Silent,
    Over(Over),
}

impl Reader {
    async fn begin(&mut self, deadline: Instant, key: Option<&str>) -> Result<(), Failure> {
        let (mut deadline, mut held_bytes) = (deadline, 0);
        loop {
            match self.step(deadline).await {
                Step::Piece { piece, speaks } => {
                    if self.held.is_empty() {
                        // It has begun to talk: from here on it may be as slow as a stream may be.
                        deadline = deadline.max(Instant::now() + self.idle);
                    }
                    held_bytes += piece.data.len();
                    self.held.push_back(piece);
                    if speaks {
                        return Ok(());
                    }
                    if held_bytes > PRELUDE_MAX {
                        return Err(Failure::Garbled("a stream that says nothing"));
                    }
                }
                Step::Done => return Err(Failure::Garbled("a stream without an answer")),
                Step::Error(error) => return Err(fault::of_object(&error, key)),
                Step::Unreadable => return Err(Failure::Garbled("a stream that can't be read")),
                Step::Silent => return Err(Failure::Timeout),
                Step::Over(Over::Closed | Over::Broken) => return Err(Failure::Connection),
                Step::Over(Over::TooLong) => return Err(Failure::Garbled("a stream with too long a line")),
            }
        }
    }

    async fn event(&mut self) -> Event {
        if let Some(piece) = self.held.pop_front() {
            return Event::Piece(piece);
        }
        let finished = self.any_finished && self.open.is_empty();
        let patience = if finished { self.idle.min(AFTER_FINISH) } else { self.idle };
        let error = match self.step(Instant::now() + patience).await {
            Step::Piece { piece, .. } => return Event::Piece(piece),
            Step::Done => {
                self.drain();
                return Event::End(self.tally.step());
            }
            Step::Silent | Step::Over(Over::Closed | Over::Broken) if finished => {
                return Event::End(self.tally.step());
            }
            Step::Error(_) => FAULTY,
            Step::Silent => SILENT,
            Step::Over(Over::Closed | Over::Broken) => LOST,
            Step::Unreadable | Step::Over(Over::TooLong) => UNREADABLE,
        };
        Event::Cut { error: error.to_owned(), step: self.tally.step() }
    }

    /// What comes next, by `deadline`: comments and pings don't put it off.
    async fn step(&mut self, deadline: Instant) -> Step {
        loop {
            if let Some(event) = self.events.pop_front() {
                if let Some(step) = self.read(&event) {
                    return step;
                }
            } else if let Some(over) = self.over {
                return Step::Over(over);
            } else {
                match timeout_at(deadline, self.body.next()).await {
                    Err(_) => return Step::Silent,
                    Ok(Some(Ok(bytes))) => self.feed(&bytes),
                    Ok(Some(Err(()))) => self.over = Some(Over::Broken),
                    Ok(None) => {
                        self.over = Some(Over::Closed);
                        self.events.extend(self.parser.finish());
                    }
                }
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        if self.parser.push(bytes, &mut self.events).is_err() {
            self.over = Some(Over::TooLong);
        }
    }

    fn read(&mut self, event: &SseEvent) -> Option<Step> {
        let data = event.data.trim();
        if data.is_empty() {
            return None;
        }
        if data.eq_ignore_ascii_case("[done]") {
            return Some(Step::Done);
        }
        let mut object: Value = match json::read(data) {
            Ok(object) => object,
            // Events without the blank line between them.
            Err(_) if data.contains('\n') => {
                for line in data.lines().rev() {
                    self.events.push_front(SseEvent { name: event.name.clone(), data: line.to_owned() });
                }
                return None;
            }
            // The last line of a body that was cut.
            Err(error) if error.is_eof() && self.over.is_some() && self.events.is_empty() => return None,
            Err(_) => return Some(Step::Unreadable),
        };
        if let Some(error) = fault::error_of(&object) {
            return Some(Step::Error(error.clone()));
        }
        if event.name == "error" {
            return Some(Step::Error(object));
        }
        if !object.is_object() {
            return Some(Step::Unreadable);
        }
        // On one line, or it would fall apart when it is sent on as an event. In JSON a line's end is a mere blank.
        let data = data.replace('\n', "");
        if self.operation == Operation::Responses {
            return self.read_response_event(&object, data);
        }
        let mut piece = completion::read_chunk(&object, &mut self.tools)?;
        let speaks = self.count(&object);
        let without_choices = piece.only_usage && !object["choices"].is_array();
        if without_choices {
            object["choices"] = Value::Array(Vec::new());
        }
        piece.data = if without_choices { object.to_string() } else { data };
        Some(Step::Piece { piece, speaks })
    }

    fn read_response_event(&mut self, object: &Value, data: String) -> Option<Step> {
        let told = responses::read_event(object, &self.tally)?;
        if let Told::Error(error) = told {
            return Some(Step::Error(error.clone()));
        }
        let event = object["type"].as_str().unwrap_or_default().to_owned();
        let mut piece = Piece { data, event, ..Piece::default() };
        if told == Told::End {
            piece.finish_reason = Some(piece.event.clone());
            // Nothing follows, though some say [DONE] all the same.
            self.any_finished = true;
            self.events.clear();
            self.drain();
            self.over = Some(Over::Closed);
        }
        Some(Step::Piece { piece, speaks: told != Told::Prelude })
    }

    /// Keeps count of what was said and of who is still speaking; whether it was anything at all.
    fn count(&mut self, chunk: &Value) -> bool {
        if let Some(report) = completion::report_of(chunk) {
            self.tally.report(report);
        }
        let mut speaks = false;
        for choice in chunk.get("choices").and_then(Value::as_array).into_iter().flatten() {
            let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0).min(CHOICES_MAX);
            let delta = choice.get("delta").unwrap_or(&Value::Null);
            completion::said(delta, &mut |text| self.tally.say(text));
            if completion::finish_reason(choice).is_some() {
                self.open.remove(&index);
                self.any_finished = true;
                speaks = true;
            } else if completion::speaks(delta) {
                self.open.insert(index);
                speaks = true;
            }
        }
        speaks
    }

    /// Reads on to the body's end without anyone waiting for it, so that the connection can be used again.
    fn drain(&mut self) {
        if self.over.is_none() {
            let mut body = std::mem::replace(&mut self.body, Box::pin(futures::stream::empty()));
            tokio::spawn(async move {
                timeout(DRAIN, async { while let Some(Ok(_)) = body.next().await {} }).await
            });
        }
    }
}
