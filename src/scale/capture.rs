//! What the driver says of the statements it runs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, Registry};

#[derive(Clone, Default)]
pub(super) struct Capture(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    statements: BTreeSet<String>,
    notices: BTreeSet<String>,
}

impl Capture {
    /// For the whole process: the driver has threads of its own. Tests run in a process each.
    pub(super) fn install() -> Self {
        let capture = Capture::default();
        tracing::subscriber::set_global_default(Registry::default().with(capture.clone()))
            .expect("this test is alone in its process, as nextest runs it");
        capture
    }

    pub(super) fn clear(&self) {
        *self.0.lock() = Heard::default();
    }

    /// Each once, with single blanks.
    pub(super) fn statements(&self) -> Vec<String> {
        self.0.lock().statements.iter().cloned().collect()
    }

    /// What the server said beside its answers.
    pub(super) fn notices(&self) -> Vec<String> {
        self.0.lock().notices.iter().cloned().collect()
    }
}

impl<S: Subscriber> Layer<S> for Capture {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("sqlx")
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut heard = self.0.lock();
        match event.metadata().target() {
            // A short statement stands in the summary alone.
            "sqlx::query" => {
                let sql = if fields.statement.is_empty() { fields.summary } else { fields.statement };
                heard.statements.insert(sql.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            "sqlx::postgres::notice" => {
                heard.notices.insert(fields.message);
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct Fields {
    summary: String,
    statement: String,
    message: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => value.clone_into(&mut self.summary),
            "db.statement" => value.clone_into(&mut self.statement),
            "message" => value.clone_into(&mut self.message),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }
}
