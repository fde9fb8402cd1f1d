//! Signing in and out, the selected workspace, the first admin.

use leptos::prelude::*;
use leptos::server_fn;

use super::PageError;
#[cfg(feature = "ssr")]
use super::request;

#[server(name = SignIn, endpoint = "sign-in")]
pub(crate) async fn sign_in(
    email: String,
    password: String,
    #[server(default)] next: String,
) -> Result<(), PageError> {
    let signed_in = async {
        let (session, address) = (request::session()?, request::client_address().await?);
        request::services().identity.sign_in(&session, &email, password, address.0).await.map(drop)
    };
    request::signed_in(signed_in.await, &next)
}

#[server(name = SignOut, endpoint = "sign-out")]
pub(crate) async fn sign_out() -> Result<(), PageError> {
    let signed_out = async { request::services().identity.sign_out(&request::session()?).await };
    request::changed(signed_out.await, "/login")
}

/// Selects the workspace of what is not tied to a record, for this session.
#[server(name = SelectWorkspace, endpoint = "select-workspace")]
pub(crate) async fn select_workspace(workspace: String) -> Result<(), PageError> {
    let selected = async {
        let (session, caller) = (request::session()?, request::caller().await?);
        request::services().identity.select_workspace(&session, &caller, workspace.into()).await
    };
    request::changed(selected.await, &request::form_path())
}

/// Makes the first platform admin, for whoever holds the link that the server printed, and signs them in.
#[server(name = SetUp, endpoint = "set-up")]
pub(crate) async fn set_up(token: String, email: String, password: String) -> Result<(), PageError> {
    let made = async {
        let (session, address) = (request::session()?, request::client_address().await?);
        let identity = request::services().identity;
        identity.complete_set_up(&email, &password, &token).await?;
        identity.sign_in(&session, &email, password, address.0).await.map(drop)
    };
    request::changed(made.await, "/")
}

/// Whether the token is that of the set-up link, and there still is something to set up.
#[server(name = MaySetUp, endpoint = "may-set-up", input = server_fn::codec::GetUrl)]
pub(crate) async fn may_set_up(token: String) -> Result<bool, PageError> {
    request::read(request::services().identity.may_set_up(&token).await)
}
