//! The playground: what may be chosen there, charts of what came, and the form's answer without script.

use leptos::prelude::*;
use leptos::server_fn;
use serde::{Deserialize, Serialize};
use tollkeeper::model::dashboard::{DashboardRow, SourceRow, Spec};
use tollkeeper::model::figures::Figure;
use tollkeeper::model::{LimitState, WorkspaceId};

use super::PageError;
#[cfg(feature = "ssr")]
use super::request;
use crate::pages::playground::{Reply, Target};

/// All that the page starts with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Playground {
    /// Of the workspaces in which the caller may call models, as the dashboards are.
    pub(crate) sources: Vec<SourceRow>,
    pub(crate) dashboards: Vec<DashboardRow>,
    /// Names of these workspaces.
    pub(crate) workspaces: Vec<(WorkspaceId, String)>,
    pub(crate) chosen: Chosen,
    /// Both limits of the workspace of what is chosen.
    pub(crate) limits: Option<(WorkspaceId, LimitState)>,
    pub(crate) posted: Option<Posted>,
}

/// Ids; empty where nothing is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    pub(crate) source: String,
    pub(crate) dashboard: String,
}

/// What the form was answered, where it was sent without script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Posted {
    pub(crate) prompt: String,
    pub(crate) answer: Option<Reply>,
    /// Why there is none.
    pub(crate) refusal: Option<String>,
    pub(crate) status: u16,
    pub(crate) retry_after_s: Option<u64>,
}

/// A record to choose, with its workspace's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) workspace: String,
}

/// A dashboard as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Preview {
    pub(crate) spec: Option<Spec>,
    pub(crate) figures: Vec<Option<Figure>>,
}

impl Playground {
    pub(crate) fn entry(&self, id: &str, name: &str, workspace: &WorkspaceId) -> Entry {
        Entry { id: id.to_owned(), name: name.to_owned(), workspace: self.workspace_name(workspace) }
    }

    pub(crate) fn workspace_name(&self, id: &WorkspaceId) -> String {
        let found = self.workspaces.iter().find(|(other, _)| other == id);
        found.map_or_else(|| id.to_string(), |(_, name)| name.clone())
    }

    pub(crate) fn workspace_of(&self, target: &Target) -> Option<&WorkspaceId> {
        match target {
            Target::Source(id) => self.sources.iter().find(|row| row.id == *id).map(|row| &row.workspace),
            Target::Dashboard(id) => {
                self.dashboards.iter().find(|row| row.id == *id).map(|row| &row.workspace)
            }
        }
    }
}

/// `source` and `dashboard` are ids to start with, if they can be seen.
#[server(name = LoadPlayground, prefix = "/_fn", endpoint = "playground", input = server_fn::codec::GetUrl)]
pub(crate) async fn playground(
    #[server(default)] source: String,
    #[server(default)] dashboard: String,
) -> Result<Playground, PageError> {
    request::read(on_server::load(Chosen { source, dashboard }).await)
}

/// The figures of a spec's widgets, where the source's rows are here.
#[server(name = Draw, prefix = "/_fn", endpoint = "draw", input = server_fn::codec::Json)]
pub(crate) async fn draw(source: String, spec: Spec) -> Result<Vec<Option<Figure>>, PageError> {
    request::read(on_server::draw(&source, &spec).await)
}

#[server(name = PreviewDashboard, prefix = "/_fn", endpoint = "dashboard", input = server_fn::codec::GetUrl)]
pub(crate) async fn preview(id: String) -> Result<Preview, PageError> {
    request::read(on_server::preview(&id).await)
}

#[cfg(feature = "ssr")]
pub(crate) use on_server::answer;

#[cfg(feature = "ssr")]
mod on_server {
    use std::collections::BTreeSet;

    use tollkeeper::api::dashboard_chat::chat;
    use tollkeeper::api::generate::generate;
    use tollkeeper::directory::Page;
    use tollkeeper::identity::Caller;
    use tollkeeper::limits::Who;
    use tollkeeper::model::Error;
    use tollkeeper::model::answers::{Said, Speaker};
    use tollkeeper::reports::figures;
    use tollkeeper::services::Services;

    use super::{
        Chosen, DashboardRow, Figure, LimitState, Playground, Posted, Preview, Reply, SourceRow, Spec,
        Target, WorkspaceId, request, use_context,
    };
    use crate::backend::posted::{AtOwnAddress, Form};
    use crate::pages::playground::Outcome;

    /// A page lists no more of each kind; who has more names one in the address.
    const CHOICES_MAX: i64 = 1_000;

    pub(super) async fn load(asked: Chosen) -> Result<Playground, Error> {
        let (services, caller) = (request::services(), request::caller().await?);
        if !caller.me().calls_models() {
            return Err(Error::Forbidden(
                "the playground calls models, which viewers may not; ask an admin for the role editor".into(),
            ));
        }
        let within = where_models_may_be_called(&caller);
        let page = Page { after: None, limit: Some(CHOICES_MAX) };
        let sources = services.directory.sources_of(within.as_deref(), &page).await?;
        let dashboards = services.directory.dashboards_of(within.as_deref(), &page).await?;
        let owners: BTreeSet<WorkspaceId> = sources
            .iter()
            .map(|row| &row.workspace)
            .chain(dashboards.iter().map(|row| &row.workspace))
            .cloned()
            .collect();
        let owners: Vec<WorkspaceId> = owners.into_iter().collect();
        let workspaces = services.directory.workspaces(Some(&owners), &Page::default()).await?;

        let posted = use_context::<AtOwnAddress<(Chosen, Posted)>>().map(|answered| answered.0);
        let asked = posted.as_ref().map_or(asked, |(chosen, _)| chosen.clone());
        let mut data = Playground {
            chosen: chosen(&asked, &sources, &dashboards),
            sources,
            dashboards,
            workspaces: workspaces.into_iter().map(|workspace| (workspace.id, workspace.name)).collect(),
            limits: None,
            posted: posted.map(|(_, posted)| posted),
        };
        data.limits = limits(&services, &caller, &data).await?;
        Ok(data)
    }

    /// What is asked for, as far as it is there; else the first source, so that there is something to try.
    fn chosen(asked: &Chosen, sources: &[SourceRow], dashboards: &[DashboardRow]) -> Chosen {
        if let Some(row) = dashboards.iter().find(|row| row.id == asked.dashboard) {
            return Chosen { source: row.source.clone(), dashboard: row.id.clone() };
        }
        let source = sources.iter().find(|row| row.id == asked.source).or(sources.first());
        Chosen { source: source.map(|row| row.id.clone()).unwrap_or_default(), dashboard: String::new() }
    }

    async fn limits(
        services: &Services,
        caller: &Caller,
        data: &Playground,
    ) -> Result<Option<(WorkspaceId, LimitState)>, Error> {
        let target = Target::of(&data.chosen);
        let Some(workspace) = data.workspace_of(&target).cloned() else {
            return Ok(None);
        };
        let who = Who { workspace: workspace.clone(), user: caller.user.clone() };
        Ok(Some((workspace, services.limiter.peek(&who).await?)))
    }

    fn where_models_may_be_called(caller: &Caller) -> Option<Vec<WorkspaceId>> {
        let own = caller.workspaces()?;
        Some(own.into_iter().filter(|workspace| caller.may_call_models(workspace).is_ok()).collect())
    }

    pub(super) async fn draw(source: &str, spec: &Spec) -> Result<Vec<Option<Figure>>, Error> {
        figures_for(&request::services(), &request::caller().await?, source, spec).await
    }

    async fn figures_for(
        services: &Services,
        caller: &Caller,
        source: &str,
        spec: &Spec,
    ) -> Result<Vec<Option<Figure>>, Error> {
        let found = services.directory.source(source).await?;
        let source = found
            .filter(|found| caller.belongs_to(&found.workspace))
            .ok_or_else(|| Error::no_such("source", source))?;
        spec.check(&source.columns).map_err(Error::Invalid)?;
        Ok(figures(spec, &source.columns, &source.rows))
    }

    pub(super) async fn preview(id: &str) -> Result<Preview, Error> {
        let (services, caller) = (request::services(), request::caller().await?);
        let found = services.directory.dashboard(id).await?;
        let dashboard = found
            .filter(|found| caller.belongs_to(&found.workspace))
            .ok_or_else(|| Error::no_such("dashboard", id))?;
        // A spec may name columns that its source has lost meanwhile: then there is nothing to draw.
        let figures = match &dashboard.spec {
            Some(spec) => figures_for(&services, &caller, &dashboard.source, spec).await.unwrap_or_default(),
            None => Vec::new(),
        };
        Ok(Preview { spec: dashboard.spec, figures })
    }

    /// Answers the form as the JSON API would, whole.
    pub(crate) async fn answer(services: Services, caller: Caller, form: Form) -> (Chosen, Posted) {
        let chosen = Chosen { source: form.text("source"), dashboard: form.text("dashboard") };
        let prompt = form.text("prompt");
        let result = match Target::of(&chosen) {
            Target::Dashboard(id) => {
                let said = vec![Said { role: Speaker::User, content: prompt.clone() }];
                chat(&services, &caller, &id, said).await.and_then(|outcome| outcome.result).map(|done| {
                    Reply {
                        text: done.message,
                        outcome: Outcome::Done {
                            model: done.model,
                            usage: done.usage,
                            steps: Some(done.steps),
                        },
                        ..Reply::default()
                    }
                })
            }
            Target::Source(id) => {
                match generate(&services, &caller, &id, &prompt).await.and_then(|outcome| outcome.result) {
                    Ok(made) => Ok(Reply {
                        figures: figures_for(&services, &caller, &id, &made.spec).await.unwrap_or_default(),
                        spec: Some(made.spec),
                        outcome: Outcome::Done { model: made.model, usage: made.usage, steps: None },
                        ..Reply::default()
                    }),
                    Err(error) => Err(error),
                }
            }
        };
        let posted = match result {
            Ok(reply) => {
                Posted { prompt, answer: Some(reply), refusal: None, status: 200, retry_after_s: None }
            }
            Err(error) => Posted {
                prompt,
                answer: None,
                refusal: Some(error.to_string()),
                status: error.status(),
                retry_after_s: error.retry_after_s(),
            },
        };
        (chosen, posted)
    }
}
