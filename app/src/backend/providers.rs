//! Settings → Providers: the pool shown and changed. What each change led to is in the trail, whose entry the
//! next address names, so that the page can tell it with and without script.
#![expect(clippy::too_many_arguments, reason = "a form's fields are its function's arguments")]

use leptos::prelude::*;
use leptos::server_fn;
use tollkeeper::model::providers::ProvidersPage;

use super::PageError;
#[cfg(feature = "ssr")]
use super::request;

/// `done` is the audit entry of the change that has just been made.
#[server(name = ReadProviders, endpoint = "providers", input = server_fn::codec::GetUrl)]
pub(crate) async fn providers(#[server(default)] done: Option<i64>) -> Result<ProvidersPage, PageError> {
    let page = async {
        request::caller().await?.require_admin()?;
        let services = request::services();
        services.reports.providers_page(&services.pool, done).await
    };
    request::read(page.await)
}

#[server(name = AddPlatform, endpoint = "provider-add-platform")]
pub(crate) async fn add_platform(id: String, base_url: String) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        pool.add_platform(&actor, id.trim(), &base_url).await
    };
    on_server::changed(done.await)
}

#[server(name = RemovePlatform, endpoint = "provider-remove-platform")]
pub(crate) async fn remove_platform(id: String) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        pool.remove_platform(&actor, &id).await
    };
    on_server::changed(done.await)
}

#[server(name = AddProviderKey, endpoint = "provider-add-key")]
pub(crate) async fn add_key(platform: String, label: String, secret: String) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        let new = tollkeeper::providers::admin::NewKey {
            platform: &platform,
            label: &label,
            secret: &secret,
            enabled: true,
        };
        pool.add_key(&actor, new).await.map(|(_, done)| done)
    };
    on_server::changed(done.await)
}

#[server(name = RotateProviderKey, endpoint = "provider-rotate-key")]
pub(crate) async fn rotate_key(id: String, secret: String) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        pool.rotate_key(&actor, &id, &secret).await
    };
    on_server::changed(done.await)
}

#[server(name = EnableProviderKey, endpoint = "provider-enable-key")]
pub(crate) async fn enable_key(id: String, enabled: bool) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        pool.enable_key(&actor, &id, enabled).await
    };
    on_server::changed(done.await)
}

#[server(name = RemoveProviderKey, endpoint = "provider-remove-key")]
pub(crate) async fn remove_key(id: String) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        pool.remove_key(&actor, &id).await
    };
    on_server::changed(done.await)
}

/// Numbers as people type them; an empty limit is unlimited.
#[server(name = AddProviderModel, endpoint = "provider-add-model")]
pub(crate) async fn add_model(
    platform: String,
    model: String,
    alias: String,
    rpm: String,
    rpd: String,
    tpm: String,
    tpd: String,
    priority: String,
) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        let model = model.trim();
        let settings = on_server::settings(model, &alias, [&rpm, &rpd, &tpm, &tpd], &priority)?;
        pool.add_model(&actor, &platform, model, settings).await
    };
    on_server::changed(done.await)
}

#[server(name = EditProviderModel, endpoint = "provider-edit-model")]
pub(crate) async fn edit_model(
    platform: String,
    model: String,
    alias: String,
    rpm: String,
    rpd: String,
    tpm: String,
    tpd: String,
    priority: String,
) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        let settings = on_server::settings(&model, &alias, [&rpm, &rpd, &tpm, &tpd], &priority)?;
        pool.edit_model(&actor, &platform, &model, settings.into()).await
    };
    on_server::changed(done.await)
}

#[server(name = RemoveProviderModel, endpoint = "provider-remove-model")]
pub(crate) async fn remove_model(platform: String, model: String) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        pool.remove_model(&actor, &platform, &model).await
    };
    on_server::changed(done.await)
}

#[server(name = ClearCooldown, endpoint = "provider-clear-cooldown")]
pub(crate) async fn clear_cooldown(platform: String, model: String, key: String) -> Result<(), PageError> {
    let done = async {
        let (pool, actor) = on_server::admin().await?;
        pool.clear_cooldown(&actor, &tollkeeper::providers::CandidateId::new(&platform, &model, &key)).await
    };
    on_server::changed(done.await)
}

/// Its outcome stands with the candidate, not in the address.
#[server(name = TestProviderKey, endpoint = "provider-test")]
pub(crate) async fn test_key(platform: String, model: String, key: String) -> Result<(), PageError> {
    let tested = async {
        let (pool, actor) = on_server::admin().await?;
        pool.test_key(&actor, &tollkeeper::providers::CandidateId::new(&platform, &model, &key)).await
    };
    on_server::changed(tested.await.map(|_| None))
}

#[cfg(feature = "ssr")]
mod on_server {
    use tollkeeper::audit::Actor;
    use tollkeeper::model::Error;
    use tollkeeper::model::fmt::parse_thousands;
    use tollkeeper::model::providers::ModelSettings;
    use tollkeeper::providers::Pool;
    use tollkeeper::providers::admin::Done;

    use super::{PageError, request};

    const PAGE: &str = "/settings/providers";

    /// Whoever isn't an admin changes nothing.
    pub(super) async fn admin() -> Result<(Pool, Actor), Error> {
        let caller = request::caller().await?;
        caller.require_admin()?;
        Ok((request::services().pool, caller.actor()))
    }

    pub(super) fn changed(result: Result<Done, Error>) -> Result<(), PageError> {
        let next = match &result {
            Ok(Some(entry)) => format!("{PAGE}?done={entry}"),
            _ => PAGE.to_owned(),
        };
        request::changed(result.map(drop), &next)
    }

    pub(super) fn settings(
        model: &str,
        alias: &str,
        limits: [&str; 4],
        priority: &str,
    ) -> Result<ModelSettings, Error> {
        let number = |name: &str, text: &str| {
            let text = text.trim();
            if text.is_empty() {
                return Ok(None);
            }
            parse_thousands(text).map(Some).ok_or_else(|| {
                Error::Invalid(format!("{name} has to be a whole number, or empty where it is unlimited"))
            })
        };
        let [rpm, rpd, tpm, tpd] = limits;
        let alias = alias.trim();
        Ok(ModelSettings {
            alias: if alias.is_empty() { model.to_owned() } else { alias.to_owned() },
            rpm: number("requests per minute", rpm)?,
            rpd: number("requests per day", rpd)?,
            tpm: number("tokens per minute", tpm)?,
            tpd: number("tokens per day", tpd)?,
            priority: number("priority", priority)?.unwrap_or(1),
        })
    }
}
