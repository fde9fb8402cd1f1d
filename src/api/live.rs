//! `GET /api/live/…`: what a page shows, again whenever it has changed. One stream a tab.
//!
//! A change of the database is told at once where this process made it, and within a second where
//! another replica, another program or the command line did: one task notices it for all streams
//! ([`Changes`](crate::store::Changes)), so an idle page costs the database nothing. What memory
//! holds is looked at every second. A stream ends after a few minutes; the browser then connects
//! again, which is when a session that has ended is noticed.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::auth::{SessionOnly, SettingsCaller};
use super::model_request::whose;
use super::respond::ApiResult;
use super::{Path, Query};
use crate::model::providers::ProvidersPage;
use crate::model::reports::{AuditPage, AuditQuery, WorkspaceDetail, WorkspacesPage, WorkspacesQuery};
use crate::model::{Error, LimitState, Timestamp, WorkspaceId};
use crate::services::Services;

/// Updates come no closer together than this, however busy the gateway is.
const CALM: Duration = Duration::from_millis(400);
/// After that, how long until what memory holds is looked at again.
const LOOK_AFTER: Duration = Duration::from_millis(600);
/// How often to tell the time, so that countdowns stay right, when nothing changes.
const TELL_EVERY: Duration = Duration::from_secs(20);
/// How soon a browser connects again: by itself it would wait for seconds, in which a page says nothing new.
const AGAIN_IN: Duration = Duration::from_millis(300);
const LIFE: Duration = Duration::from_mins(5);

/// A page of the list of workspaces, as `WorkspacesPage`.
pub async fn workspaces(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Query(query): Query<WorkspacesQuery>,
) -> ApiResult<Response> {
    let scope = caller.settings_scope()?;
    let reports = services.reports.clone();
    Ok(stream_of_tables(&services, move || {
        let (reports, scope, query) = (reports.clone(), scope.clone(), query.clone());
        async move { reports.workspaces_page(&scope, &query).await }
    }))
}

/// A workspace's page, as `WorkspaceDetail`.
pub async fn workspace(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let workspace = WorkspaceId::from(id);
    caller.may_see_settings_of(&workspace)?;
    let reports = services.reports.clone();
    reports.workspace_row(&workspace).await?;
    Ok(stream_of_tables(&services, move || {
        let (reports, workspace) = (reports.clone(), workspace.clone());
        async move { reports.workspace(&workspace).await }
    }))
}

/// A page of the audit trail, as `AuditPage`.
pub async fn audit(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Query(query): Query<AuditQuery>,
) -> ApiResult<Response> {
    caller.require_admin()?;
    let reports = services.reports.clone();
    reports.audit_page(&query).await?;
    Ok(stream_of_tables(&services, move || {
        let (reports, query) = (reports.clone(), query.clone());
        async move { reports.audit_page(&query).await }
    }))
}

/// The providers' page, as `ProvidersPage`.
pub async fn providers(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
) -> ApiResult<Response> {
    caller.require_admin()?;
    let (reports, pool) = (services.reports.clone(), services.pool.clone());
    Ok(stream(&services, move || {
        let (reports, pool) = (reports.clone(), pool.clone());
        async move { reports.providers_page(&pool, None).await }
    }))
}

/// What is left of both limits for the caller in a workspace, as `LimitState`.
pub async fn limits(
    State(services): State<Services>,
    SessionOnly(caller): SessionOnly,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let workspace = WorkspaceId::from(id);
    let who = whose(&caller, &workspace, || Error::no_such("workspace", workspace.as_str()))?;
    let limiter = services.limiter.clone();
    Ok(stream(&services, move || {
        let (limiter, who) = (limiter.clone(), who.clone());
        async move { limiter.peek(&who).await }
    }))
}

/// What is shown, apart from the time at which it was read.
trait View: Serialize + Clone + PartialEq + Send + 'static {
    fn at_no_time(self) -> Self;
}

impl View for WorkspacesPage {
    fn at_no_time(self) -> Self {
        Self { now: Timestamp(0), ..self }
    }
}

impl View for WorkspaceDetail {
    fn at_no_time(self) -> Self {
        Self { now: Timestamp(0), ..self }
    }
}

impl View for AuditPage {
    fn at_no_time(self) -> Self {
        self
    }
}

impl View for ProvidersPage {
    /// While a cooldown runs every second counts.
    fn at_no_time(self) -> Self {
        let cooling = self
            .candidates
            .iter()
            .any(|state| state.cooldown.as_ref().is_some_and(|cooldown| cooldown.until.is_some()));
        let now = if cooling { Timestamp(self.now.ms() / 1_000) } else { Timestamp(0) };
        Self { now, ..self }
    }
}

impl View for LimitState {
    fn at_no_time(self) -> Self {
        Self { now: Timestamp(0), ..self }
    }
}

/// Of what the database holds, whose changes are announced.
fn stream_of_tables<V: View, R>(services: &Services, read: impl Fn() -> R + Send + 'static) -> Response
where
    R: Future<Output = Result<V, Error>> + Send,
{
    stream_at_least_every(TELL_EVERY, services, read)
}

/// Of what memory holds too, whose changes nobody announces.
fn stream<V: View, R>(services: &Services, read: impl Fn() -> R + Send + 'static) -> Response
where
    R: Future<Output = Result<V, Error>> + Send,
{
    stream_at_least_every(LOOK_AFTER, services, read)
}

fn stream_at_least_every<V: View, R>(
    look_after: Duration,
    services: &Services,
    read: impl Fn() -> R + Send + 'static,
) -> Response
where
    R: Future<Output = Result<V, Error>> + Send,
{
    let (events, told) = mpsc::channel(1);
    let mut changes = services.ledger.changes();
    let stopping = services.stopping.clone();
    let watch = async move {
        let end = Instant::now() + LIFE;
        let (mut last, mut told_at) = (None, Instant::now());
        while Instant::now() < end {
            // A database that doesn't answer for a while is no reason to end the stream.
            let view = read().await;
            let look_after = if view.is_ok() { look_after } else { LOOK_AFTER };
            if let Ok(view) = view {
                let bare = view.clone().at_no_time();
                if last.as_ref() != Some(&bare) || told_at.elapsed() >= TELL_EVERY {
                    let data = serde_json::to_string(&view).unwrap_or_default();
                    if events.send(Event::default().retry(AGAIN_IN).data(data)).await.is_err() {
                        return;
                    }
                    (last, told_at) = (Some(bare), Instant::now());
                }
            }
            tokio::time::sleep(CALM).await;
            tokio::select! {
                () = events.closed() => return,
                _ = changes.changed() => {}
                () = tokio::time::sleep(look_after) => {}
            }
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            () = watch => {}
            () = stopping.cancelled() => {}
        }
    });
    let events = ReceiverStream::new(told).map(Ok::<_, Infallible>);
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
