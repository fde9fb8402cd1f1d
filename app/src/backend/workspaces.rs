//! The list of workspaces.

use leptos::prelude::*;
use leptos::server_fn;
use tollkeeper::model::reports::{WorkspacesPage, WorkspacesQuery};

use super::PageError;
#[cfg(feature = "ssr")]
use super::request;

#[server(name = ListWorkspaces, endpoint = "list-workspaces", input = server_fn::codec::GetUrl)]
pub(crate) async fn list_workspaces(query: WorkspacesQuery) -> Result<WorkspacesPage, PageError> {
    let page = async {
        let scope = request::caller().await?.settings_scope()?;
        request::services().reports.workspaces_page(&scope, &query).await
    };
    request::read(page.await)
}
