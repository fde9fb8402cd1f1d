//! Whether what the file's records refer to is there: in the file, or made elsewhere.
//!
//! A record that a file made and that this one drops is about to be removed, so it counts as missing.

use std::collections::{HashMap, HashSet};

use super::ApplyError;
use super::current::Current;
use crate::directory::file::{At, File};

pub(super) fn check(file: &File, current: &Current) -> Result<(), ApplyError> {
    let elsewhere = current.workspaces.iter().filter(|(_, w)| !w.managed).map(|(id, _)| id.as_str());
    let workspaces: HashSet<&str> = file.workspaces.iter().map(|w| w.id.as_str()).chain(elsewhere).collect();
    // Where both have the source, the file's word counts.
    let mut sources: HashMap<&str, &str> = current
        .sources
        .iter()
        .filter(|(_, s)| !s.managed)
        .map(|(id, s)| (id.as_str(), s.workspace.as_str()))
        .collect();
    sources.extend(file.sources.iter().map(|s| (s.id.as_str(), s.workspace.value.as_str())));

    // The first fault by line, whatever kind of record it is in.
    let mut first: Option<(usize, String)> = None;
    let mut fault = |line: usize, sentence: String| {
        if first.as_ref().is_none_or(|(earlier, _)| line < *earlier) {
            first = Some((line, sentence));
        }
    };
    let memberships = file.users.iter().flat_map(|u| u.memberships.iter().map(|(workspace, _)| workspace));
    let owners =
        file.sources.iter().map(|s| &s.workspace).chain(file.dashboards.iter().map(|d| &d.workspace));
    for At { value, line } in memberships.chain(owners) {
        if !workspaces.contains(value.as_str()) {
            fault(
                *line,
                format!("there is no workspace \"{value}\"; name one of this file or one made elsewhere"),
            );
        }
    }
    for dashboard in &file.dashboards {
        let At { value, line } = &dashboard.source;
        let workspace = &dashboard.workspace.value;
        match sources.get(value.as_str()) {
            None => {
                fault(
                    *line,
                    format!("there is no source \"{value}\"; name one of this file or one made elsewhere"),
                );
            }
            Some(owner) if *owner != workspace => fault(
                *line,
                format!(
                    "the source \"{value}\" belongs to the workspace \"{owner}\"; a dashboard of \"{workspace}\" \
                     needs a source of \"{workspace}\""
                ),
            ),
            Some(_) => {}
        }
    }
    match first {
        None => Ok(()),
        Some((line, sentence)) => Err(ApplyError::Form(format!("{}:{line}: {sentence}", file.name))),
    }
}
