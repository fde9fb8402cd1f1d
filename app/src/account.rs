//! Who looks at the page. Known before it is rendered, and carried to the browser with it, so that navigation
//! and rights need no waiting there. What counts is checked by the server with every request.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use tollkeeper::model::{Error, Me, WorkspaceId};

/// Someone signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) me: Me,
    /// Names of the workspaces that can be selected: the memberships', and the selected one.
    pub(crate) workspaces: Vec<(WorkspaceId, String)>,
}

/// None for strangers, an error where it can't be told.
pub(crate) type Known = Result<Option<Account>, Error>;

/// To be called once, at the root.
pub(crate) fn provide_account() {
    let known: Known = SharedValue::new(of_request).into_inner();
    provide_context(known);
}

pub(crate) fn known() -> Known {
    use_context::<Known>().unwrap_or(Ok(None))
}

/// Who looks at the page, where a `Guard` has let them pass.
pub(crate) fn me() -> Option<Me> {
    known().ok().flatten().map(|account| account.me)
}

#[cfg(feature = "ssr")]
fn of_request() -> Known {
    use axum::http::request::Parts;
    use_context::<Parts>().and_then(|parts| parts.extensions.get::<Known>().cloned()).unwrap_or(Ok(None))
}

#[cfg(not(feature = "ssr"))]
#[expect(clippy::unnecessary_wraps, reason = "the server's function of this name has errors to tell")]
fn of_request() -> Known {
    Ok(None)
}

/// Loads it for the pages behind this middleware.
#[cfg(feature = "ssr")]
pub(crate) async fn know(
    axum::extract::State(services): axum::extract::State<tollkeeper::services::Services>,
    caller: Result<tollkeeper::api::auth::MaybeSession, tollkeeper::api::ApiError>,
    mut request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    use tollkeeper::directory::Page;

    let known: Known = async {
        let Some(caller) = caller.map_err(|error| error.0)?.0 else {
            return Ok(None);
        };
        let me = caller.me();
        let mut ids: Vec<WorkspaceId> =
            me.memberships.iter().map(|membership| membership.workspace.clone()).collect();
        ids.extend(me.selected_workspace.clone().filter(|selected| !ids.contains(selected)));
        let workspaces = services.directory.workspaces(Some(&ids), &Page::default()).await?;
        let workspaces = workspaces.into_iter().map(|workspace| (workspace.id, workspace.name)).collect();
        Ok(Some(Account { me, workspaces }))
    }
    .await;
    request.extensions_mut().insert(known);
    next.run(request).await
}
