//! Settings → Keys: API keys, one's own or, for platform admins, everyone's.

use leptos::prelude::*;
use leptos::server_fn;
use serde::{Deserialize, Serialize};
use tollkeeper::model::{Error, KeyRow, Timestamp, WorkspaceId};

use super::PageError;
#[cfg(feature = "ssr")]
use super::request;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Keys {
    pub(crate) now: Timestamp,
    /// Newest first.
    pub(crate) rows: Vec<KeyRow>,
    pub(crate) page: u32,
    pub(crate) has_more: bool,
    /// Whether keys of others are among them.
    pub(crate) of_all: bool,
    /// Where a new key may work: the workspaces in which the caller may call models.
    pub(crate) workspaces: Vec<(WorkspaceId, String)>,
    pub(crate) selected: Option<WorkspaceId>,
    /// What the form was answered, where it was sent without script.
    pub(crate) posted: Option<Result<NewKey, Error>>,
}

/// A key just made. This is the only time that it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewKey {
    pub(crate) name: String,
    pub(crate) key: String,
}

/// `page` is counted from 1.
#[server(name = ListKeys, prefix = "/_fn", endpoint = "keys", input = server_fn::codec::GetUrl)]
pub(crate) async fn keys(#[server(default)] page: u32) -> Result<Keys, PageError> {
    request::read(on_server::list(page).await)
}

/// Without script the page itself makes the key, as an answer that leads elsewhere can't carry it.
#[server(name = CreateKey, prefix = "/_fn", endpoint = "create-key")]
pub(crate) async fn create_key(name: String, workspace: String, days: String) -> Result<NewKey, PageError> {
    let made = async {
        on_server::create(&request::services(), &request::caller().await?, &name, &workspace, &days).await
    };
    request::read(made.await)
}

#[server(name = RevokeKey, prefix = "/_fn", endpoint = "revoke-key")]
pub(crate) async fn revoke_key(id: String) -> Result<(), PageError> {
    request::changed(on_server::revoke(&id).await, "/settings/keys?revoked=1")
}

#[cfg(feature = "ssr")]
pub(crate) use on_server::answer;

#[cfg(feature = "ssr")]
mod on_server {
    use tollkeeper::directory::Page;
    use tollkeeper::identity::Caller;
    use tollkeeper::model::reports::PAGE_SIZE;
    use tollkeeper::services::Services;

    use super::{Error, Keys, NewKey, Timestamp, request, use_context};
    use crate::backend::posted::{AtOwnAddress, Form};

    /// The form lists no more workspaces.
    const WORKSPACES_MAX: i64 = 1_000;
    /// Keys are listed from the newest on; nobody turns this many pages.
    const PAGES_MAX: u32 = 400;
    const MS_PER_DAY: i64 = 86_400_000;
    const DAYS_MAX: i64 = 3_650;

    pub(super) async fn list(page: u32) -> Result<Keys, Error> {
        let (services, caller) = (request::services(), request::caller().await?);
        if !caller.me().calls_models() {
            return Err(Error::Forbidden(
                "API keys call models, which viewers may not; ask an admin for the role editor".into(),
            ));
        }
        let page = page.clamp(1, PAGES_MAX);
        let of = (!caller.admin).then_some(&caller.user);
        let mut rows = services.identity.list_keys(of, None, page * PAGE_SIZE + 1).await?;
        let shown = page as usize * PAGE_SIZE as usize;
        let has_more = rows.len() > shown && page < PAGES_MAX;
        rows.truncate(shown);
        rows.drain(..rows.len().min(shown - PAGE_SIZE as usize));

        let within = caller.workspaces().map(|own| {
            own.into_iter().filter(|workspace| caller.may_call_models(workspace).is_ok()).collect::<Vec<_>>()
        });
        let listed = Page { after: None, limit: Some(WORKSPACES_MAX) };
        let workspaces = services.directory.workspaces(within.as_deref(), &listed).await?;
        Ok(Keys {
            now: services.clock.now(),
            rows,
            page,
            has_more,
            of_all: caller.admin,
            workspaces: workspaces.into_iter().map(|workspace| (workspace.id, workspace.name)).collect(),
            selected: caller.selected_workspace().ok(),
            posted: use_context::<AtOwnAddress<Result<NewKey, Error>>>().map(|answered| answered.0),
        })
    }

    pub(super) async fn create(
        services: &Services,
        caller: &Caller,
        name: &str,
        workspace: &str,
        days: &str,
    ) -> Result<NewKey, Error> {
        let expires_at = expiry(days, services.clock.now())?;
        let name = name.trim();
        let made = services.identity.create_own_key(caller, &workspace.into(), name, expires_at).await?;
        Ok(NewKey { name: name.to_owned(), key: made.key })
    }

    /// Nothing, or a number of days from now.
    fn expiry(days: &str, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        if days.is_empty() {
            return Ok(None);
        }
        let days: Option<i64> = days.parse().ok().filter(|days| (1..=DAYS_MAX).contains(days));
        let days = days
            .ok_or_else(|| Error::Invalid("days has to be empty or a whole number from 1 to 3650".into()))?;
        Ok(Some(now.plus_ms(days * MS_PER_DAY)))
    }

    pub(super) async fn revoke(id: &str) -> Result<(), Error> {
        let (services, caller) = (request::services(), request::caller().await?);
        let of = (!caller.admin).then_some(&caller.user);
        services.identity.revoke_key(&caller.actor(), id, of).await
    }

    /// Makes a key for the form that was sent to the page itself.
    pub(crate) async fn answer(services: Services, caller: Caller, form: Form) -> Result<NewKey, Error> {
        create(&services, &caller, &form.text("name"), &form.text("workspace"), &form.text("days")).await
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn an_expiry_is_days_from_now_or_never() {
            let now = Timestamp(0);
            assert_eq!(expiry("", now), Ok(None));
            assert_eq!(expiry("30", now), Ok(Some(Timestamp(30 * MS_PER_DAY))));
            for bad in ["0", "-1", "3651", "1.5", "soon"] {
                assert!(expiry(bad, now).is_err(), "{bad}");
            }
        }
    }
}
