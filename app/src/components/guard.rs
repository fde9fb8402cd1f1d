//! Who may see a page. What the page then asks for is checked again where it is asked.

use leptos::prelude::*;
use tollkeeper::model::Error;

use crate::account::known;
use crate::components::Fault;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    SignIn,
    /// Settings of all workspaces or of one's own.
    Settings,
    /// A role that may call models, in any workspace.
    Models,
    Admin,
}

impl Need {
    fn check(self) -> Result<(), Error> {
        let account =
            known()?.ok_or_else(|| Error::Unauthenticated("you are signed out; sign in again".into()))?;
        let me = account.me;
        let (met, who) = match self {
            Need::SignIn => (true, ""),
            Need::Settings => (me.sees_workspaces(), "platform admins and source-admins"),
            Need::Models => (me.calls_models(), "those who may call models, from the role editor on,"),
            Need::Admin => (me.admin, "platform admins"),
        };
        if met {
            return Ok(());
        }
        let email = me.email;
        Err(Error::Forbidden(format!(
            "this page is for {who} only, and you are signed in as {email}; ask a platform admin for the role you need"
        )))
    }
}

/// The page, or why it isn't shown: strangers are led to the sign-in, others get a page with status 403.
#[component]
pub(crate) fn Guard(need: Need, children: Children) -> impl IntoView {
    match need.check() {
        Ok(()) => children().into_any(),
        Err(error) => view! { <Fault error /> }.into_any(),
    }
}
