//! The playground's state in the browser: what is chosen, what was said, the call under way.

use leptos::prelude::*;
use send_wrapper::SendWrapper;
use tollkeeper::model::WorkspaceId;
use tollkeeper::model::answers::{Said, Speaker};
use web_sys::AbortController;

use super::turn::{Outcome, Reply, Turn};
use super::wait::Wait;
use crate::backend::playground::{Chosen, Playground};
use crate::browser::http::Failed;

/// Turns of a conversation that are sent again with the next; what came before is forgotten by the model.
const TURNS_SENT: usize = 40;

/// What the prompt goes to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    Source(String),
    Dashboard(String),
}

impl Target {
    pub(crate) fn of(chosen: &Chosen) -> Self {
        if chosen.dashboard.is_empty() {
            Target::Source(chosen.source.clone())
        } else {
            Target::Dashboard(chosen.dashboard.clone())
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct State {
    /// What may be chosen.
    pub(crate) choice: StoredValue<Playground>,
    /// The ids chosen; empty where none is.
    pub(crate) source: RwSignal<String>,
    pub(crate) dashboard: RwSignal<String>,
    pub(crate) prompt: RwSignal<String>,
    /// What the prompt lacks, said beside it.
    pub(crate) fault: RwSignal<Option<&'static str>>,
    pub(crate) turns: RwSignal<Vec<Turn>>,
    /// Why the last call was not made, as its sentence.
    pub(crate) refusal: RwSignal<Option<String>>,
    pub(crate) wait: Wait,
    /// Grows with each call that ended: what is shown of the dashboard may have changed.
    pub(crate) ended: RwSignal<u32>,
    /// The call under way, to stop it. Only the browser ever puts one in.
    call: RwSignal<Option<SendWrapper<AbortController>>>,
}

impl State {
    pub(crate) fn new(data: Playground) -> Self {
        let chosen = data.chosen.clone();
        let retry_after_s = data.posted.as_ref().and_then(|posted| posted.retry_after_s);
        let (turns, refusal, prompt) = match data.posted.clone() {
            None => (Vec::new(), None, String::new()),
            Some(posted) => {
                let turn = posted
                    .answer
                    .map(|reply| Turn::new(0, Target::of(&chosen), posted.prompt.clone(), reply));
                let kept = if turn.is_some() { String::new() } else { posted.prompt };
                (turn.into_iter().collect(), posted.refusal, kept)
            }
        };
        let state = State {
            choice: StoredValue::new(data),
            source: RwSignal::new(chosen.source),
            dashboard: RwSignal::new(chosen.dashboard),
            prompt: RwSignal::new(prompt),
            fault: RwSignal::new(None),
            turns: RwSignal::new(turns),
            refusal: RwSignal::new(refusal),
            wait: Wait::new(),
            ended: RwSignal::new(0),
            call: RwSignal::new(None),
        };
        Effect::new(move || {
            if let Some(seconds) = retry_after_s {
                state.wait.begin(seconds);
            }
        });
        // Who leaves the page doesn't wait for an answer.
        on_cleanup(move || state.stop());
        state
    }

    /// A dashboard brings its source along.
    pub(crate) fn choose_dashboard(&self, id: String) {
        let source = self.choice.with_value(|choice| {
            choice
                .dashboards
                .iter()
                .find(|dashboard| dashboard.id == id)
                .map(|dashboard| dashboard.source.clone())
        });
        if let Some(source) = source {
            self.source.set(source);
        }
        self.dashboard.set(id);
    }

    /// Another source than the dashboard's leaves the dashboard.
    pub(crate) fn choose_source(&self, id: String) {
        let dashboard = self.dashboard.get_untracked();
        let fits = self
            .choice
            .with_value(|choice| choice.dashboards.iter().any(|row| row.id == dashboard && row.source == id));
        if !fits {
            self.dashboard.set(String::new());
        }
        self.source.set(id);
    }

    pub(crate) fn target(&self) -> Option<Target> {
        let (source, dashboard) = (self.source.get(), self.dashboard.get());
        match (dashboard.is_empty(), source.is_empty()) {
            (false, _) => Some(Target::Dashboard(dashboard)),
            (true, false) => Some(Target::Source(source)),
            (true, true) => None,
        }
    }

    /// Whose limits the next call is held to.
    pub(crate) fn workspace(&self) -> Option<WorkspaceId> {
        let target = self.target()?;
        self.choice.with_value(|choice| choice.workspace_of(&target).cloned())
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.call.with(Option::is_some)
    }

    pub(crate) fn stop(&self) {
        if let Some(call) = self.call.try_get_untracked().flatten() {
            call.abort();
        }
    }

    pub(crate) fn forget_refusal(&self) {
        self.refusal.set(None);
        self.wait.end();
    }

    /// Sends the prompt, unless there is nothing to send or it isn't the time.
    pub(crate) fn send(&self) {
        if self.is_busy_untracked() || self.wait.is_on_untracked() {
            return;
        }
        let prompt = self.prompt.get_untracked().trim().to_owned();
        let Some(target) = untrack(|| self.target()) else {
            self.fault.set(Some("Choose a source or a dashboard first."));
            return;
        };
        if prompt.is_empty() {
            self.fault.set(Some("Say what you want to see."));
            return;
        }
        let Ok(controller) = AbortController::new() else {
            return;
        };
        self.fault.set(None);
        self.forget_refusal();
        let said = self.conversation(&target, &prompt);
        let id = self.turns.with_untracked(Vec::len);
        let turn = Turn::new(id, target.clone(), prompt, Reply::default());
        let signal = controller.signal();
        self.call.set(Some(SendWrapper::new(controller)));
        self.turns.update(|turns| turns.push(turn.clone()));
        // A source is asked again with other words; in a chat the next message is a new one.
        if matches!(target, Target::Dashboard(_)) {
            self.prompt.set(String::new());
        }
        let state = *self;
        leptos::task::spawn_local(async move {
            let result = super::call::run(&turn, said, &signal).await;
            // The page may have been left meanwhile, its signals with it.
            if state.call.try_set(None).is_none() {
                state.settle(&turn, result);
            }
        });
    }

    fn settle(&self, turn: &Turn, result: Result<(), Failed>) {
        self.ended.update(|ended| *ended += 1);
        let Err(failed) = result else {
            return;
        };
        match failed {
            Failed::Stopped => turn.reply.update(|reply| reply.outcome = Outcome::Stopped),
            failed if turn.reply.with_untracked(Reply::is_blank) => {
                // Nothing was answered: the words go back to where they can be sent again.
                self.turns.update(|turns| turns.retain(|other| other.id != turn.id));
                if self.prompt.with_untracked(String::is_empty) {
                    self.prompt.set(turn.prompt.clone());
                }
                if let Failed::Refused { status: 429 | 503, retry_after_s: Some(seconds), .. } = failed {
                    self.wait.begin(seconds);
                }
                self.refusal.set(Some(failed.sentence()));
            }
            failed => turn.reply.update(|reply| reply.outcome = Outcome::Failed(failed.sentence())),
        }
    }

    fn is_busy_untracked(&self) -> bool {
        self.call.with_untracked(Option::is_some)
    }

    /// What was said with this dashboard so far, and the new words.
    fn conversation(&self, target: &Target, prompt: &str) -> Vec<Said> {
        let mut said: Vec<Said> = self.turns.with_untracked(|turns| {
            let with_it: Vec<&Turn> = turns.iter().filter(|turn| turn.target == *target).collect();
            let from = with_it.len().saturating_sub(TURNS_SENT);
            with_it[from..].iter().flat_map(|turn| turn.said()).collect()
        });
        said.push(Said { role: Speaker::User, content: prompt.to_owned() });
        said
    }
}
