//! A workspace's page, and the form on it.

use leptos::prelude::*;
use leptos::server_fn;
use serde::{Deserialize, Serialize};
use tollkeeper::model::reports::{AuditLine, WorkspaceDetail};

use super::PageError;
#[cfg(feature = "ssr")]
use super::request;
#[cfg(feature = "ssr")]
use crate::pages::workspace::address::{saved_path, typed_path};
#[cfg(feature = "ssr")]
use tollkeeper::{
    limits::overrides,
    model::{Error, limit_form::LimitsForm},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkspaceView {
    pub(crate) detail: WorkspaceDetail,
    /// Whether the viewer may change the limits.
    pub(crate) may_edit: bool,
}

/// Limits that were saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) detail: WorkspaceDetail,
    /// The audit line that the change left; none when it changed nothing.
    pub(crate) line: Option<AuditLine>,
}

#[server(name = ReadWorkspace, endpoint = "read-workspace", input = server_fn::codec::GetUrl)]
pub(crate) async fn read_workspace(id: String) -> Result<WorkspaceView, PageError> {
    let view = async {
        let (services, caller, id) = (request::services(), request::caller().await?, id.into());
        caller.may_see_settings_of(&id)?;
        Ok(WorkspaceView {
            detail: services.reports.workspace(&id).await?,
            may_edit: caller.require_admin().is_ok(),
        })
    };
    request::read(view.await)
}

/// Saves the form. Sent without script it leads back to the page, which then shows what was saved, or what
/// was typed and what is wrong with it.
#[server(name = SetLimits, endpoint = "set-limits")]
pub(crate) async fn set_limits(
    workspace: String,
    #[server(default)] rate: String,
    #[server(default)] rate_number: String,
    #[server(default)] rate_seen: String,
    #[server(default)] budget: String,
    #[server(default)] budget_number: String,
    #[server(default)] budget_seen: String,
) -> Result<Saved, PageError> {
    let form = async {
        request::caller().await?.require_admin()?;
        LimitsForm::read(&rate, &rate_number, &rate_seen, &budget, &budget_number, &budget_seen)
    };
    let form = form.await.map_err(request::refused)?;
    let error = match save(&workspace, &form).await {
        Ok(saved) => {
            if request::wants_page() {
                request::lead_to(&saved_path(&workspace, saved.line.as_ref()));
            }
            return Ok(saved);
        }
        Err(error) => error,
    };
    match error {
        Error::Invalid(_) | Error::Conflict(_) if request::wants_page() => {
            request::lead_to(&typed_path(&workspace, &form));
            Err(error.into())
        }
        _ => Err(request::refused(error)),
    }
}

#[cfg(feature = "ssr")]
async fn save(workspace: &str, form: &LimitsForm) -> Result<Saved, Error> {
    let (services, actor) = (request::services(), request::caller().await?.actor());
    let (edit, workspace, at) = (form.edit()?, workspace.into(), services.clock.now());
    overrides::edit(&services.store, at, &actor, &workspace, edit).await?;
    services.ledger.announce();
    let detail = services.reports.workspace(&workspace).await?;
    let line = detail.audit.iter().find(|line| line.at == at && line.actor == actor.to_string()).cloned();
    Ok(Saved { detail, line })
}
