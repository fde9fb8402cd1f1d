//! Who is calling, as extractors. An `Authorization: Bearer` header decides alone, whatever cookie
//! comes with it; other schemes are left to whatever stands in front of the server.
//!
//! | extractor | a session | a valid key | neither |
//! | --- | --- | --- | --- |
//! | [`Signed`] | taken | taken | 401 |
//! | [`SessionOnly`] | taken | 401 | 401 |
//! | [`SettingsCaller`] | taken | 403 | 401 |
//! | [`MaybeSession`] | taken | nobody | nobody |
//! | [`KeyOnly`] | 401 | taken | 401, in OpenAI's shape |

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRef, FromRequestParts};
use http::request::Parts;
use http::{HeaderMap, header};
use tower_sessions::Session;

use super::respond::{ApiError, OpenAiError};
use crate::identity::{Caller, Identity, Via};
use crate::model::Error;

/// A session or a key.
#[derive(Debug, Clone)]
pub struct Signed(pub Caller);

/// A session, on a route that takes no keys.
#[derive(Debug, Clone)]
pub struct SessionOnly(pub Caller);

/// A session, on a route of the settings: a key is known there, and refused.
#[derive(Debug, Clone)]
pub struct SettingsCaller(pub Caller);

/// A session or nobody, where that decides what is shown; a key counts as nobody.
#[derive(Debug, Clone)]
pub struct MaybeSession(pub Option<Caller>);

/// A key, on `/v1`.
#[derive(Debug, Clone)]
pub struct KeyOnly(pub Caller);

/// The address that a request comes from, if it is known.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub Option<IpAddr>);

impl<S: Send + Sync> FromRequestParts<S> for Signed
where
    Identity: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = identify(parts, &Identity::from_ref(state)).await?;
        Ok(Signed(caller.ok_or_else(Error::not_signed_in)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SessionOnly
where
    Identity: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        refuse_bearer(&parts.headers)?;
        let caller = identify(parts, &Identity::from_ref(state)).await?;
        Ok(SessionOnly(caller.ok_or_else(sign_in_first)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SettingsCaller
where
    Identity: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = identify(parts, &Identity::from_ref(state)).await?.ok_or_else(sign_in_first)?;
        match caller.via {
            Via::Session { .. } => Ok(SettingsCaller(caller)),
            Via::Key { .. } => {
                Err(Error::Forbidden("API keys do not open the settings; sign in instead".into()).into())
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for MaybeSession
where
    Identity: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if bearer(&parts.headers).is_some() {
            return Ok(MaybeSession(None));
        }
        Ok(MaybeSession(identify(parts, &Identity::from_ref(state)).await?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for KeyOnly
where
    Identity: FromRef<S>,
{
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, OpenAiError> {
        let key = bearer(&parts.headers).ok_or_else(|| {
            Error::Unauthenticated("send an API key in the header Authorization: Bearer tk_…".into())
        })?;
        let caller = Identity::from_ref(state).caller_of_key(key).await?;
        Ok(KeyOnly(caller.ok_or_else(invalid_key)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress
where
    Identity: FromRef<S>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        Ok(ClientAddress(Identity::from_ref(state).client_address(peer, &parts.headers)))
    }
}

/// # Errors
/// Unauthenticated where an API key was sent to a route that takes none.
pub fn refuse_bearer(headers: &HeaderMap) -> Result<(), Error> {
    match bearer(headers) {
        Some(_) => Err(Error::Unauthenticated("this route takes no API keys; sign in instead".into())),
        None => Ok(()),
    }
}

/// What stands behind `Bearer`, empty where it can't be read. The scheme is written in any case.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let end = value.iter().position(|b| *b == b' ').unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    scheme.eq_ignore_ascii_case(b"bearer").then(|| std::str::from_utf8(rest).unwrap_or("").trim())
}

async fn identify(parts: &Parts, identity: &Identity) -> Result<Option<Caller>, Error> {
    if let Some(key) = bearer(&parts.headers) {
        return identity.caller_of_key(key).await?.map(Some).ok_or_else(invalid_key);
    }
    match parts.extensions.get::<Session>() {
        Some(session) => identity.caller_of_session(session).await,
        None => Ok(None),
    }
}

fn invalid_key() -> Error {
    Error::Unauthenticated("this API key is not valid, or not any more; use another".into())
}

fn sign_in_first() -> Error {
    Error::Unauthenticated("sign in first".into())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;

    use super::super::testing::{Client, Served};
    use super::*;
    use crate::audit::Actor;
    use crate::config::Network;
    use crate::identity::NewKey;
    use crate::identity::testing::Site;
    use crate::model::Role;

    async fn served() -> (Served, Client, String) {
        let routes = Router::new()
            .route("/signed", get(async |Signed(caller): Signed| caller.email))
            .route("/session", get(async |SessionOnly(caller): SessionOnly| caller.email))
            .route("/settings", get(async |SettingsCaller(caller): SettingsCaller| caller.email))
            .route("/maybe", get(async |MaybeSession(caller): MaybeSession| format!("{}", caller.is_some())))
            .route("/v1/key", get(async |KeyOnly(caller): KeyOnly| caller.email));
        let served = Served::with(routes).await;
        served.site.workspace("acme").await;
        served.site.user("ada@example.com", false, &[("acme", Role::Editor)]).await;
        let new =
            NewKey { email: "ada@example.com", workspace: &"acme".into(), name: "ci", expires_at: None };
        let key = served.site.identity.create_key(&Actor::Cli, new).await.unwrap().key;
        let ada = served.signed_in("ada@example.com").await;
        (served, ada, format!("Bearer {key}"))
    }

    #[tokio::test]
    async fn each_route_takes_what_its_extractor_says() {
        let (served, ada, key) = served().await;
        let anyone = served.client();
        for (path, session, by_key, nobody) in [
            ("/signed", 200, 200, 401),
            ("/session", 200, 401, 401),
            ("/settings", 200, 403, 401),
            ("/v1/key", 401, 200, 401),
        ] {
            assert_eq!(ada.get(path, &[]).await.status, session, "{path}");
            assert_eq!(anyone.get(path, &[("authorization", &key)]).await.status, by_key, "{path}");
            assert_eq!(
                ada.get(path, &[("authorization", &key)]).await.status,
                by_key,
                "the key decides: {path}"
            );
            assert_eq!(anyone.get(path, &[]).await.status, nobody, "{path}");
        }
    }

    #[tokio::test]
    async fn where_anyone_may_ask_a_session_is_told_from_the_rest() {
        let (served, ada, key) = served().await;
        assert_eq!(ada.get("/maybe", &[]).await.body, "true");
        assert_eq!(served.client().get("/maybe", &[]).await.body, "false");
        assert_eq!(ada.get("/maybe", &[("authorization", &key)]).await.body, "false");
    }

    #[tokio::test]
    async fn a_bad_bearer_is_401_even_with_a_good_cookie() {
        let (served, ada, key) = served().await;
        let long = format!("Bearer tk_{}", "x".repeat(4000));
        for bad in ["Bearer", "Bearer ", "bearer x", "Bearer tk_'--", &long, &key[..key.len() - 1]] {
            for path in ["/signed", "/session", "/settings", "/v1/key"] {
                assert_eq!(ada.get(path, &[("authorization", bad)]).await.status, 401, "{path} {bad}");
            }
        }
        let lower = key.replace("Bearer ", "bearer  ");
        assert_eq!(served.client().get("/signed", &[("authorization", &lower)]).await.status, 200);
        assert_eq!(served.client().get("/signed", &[("authorization", "Basic dTpw")]).await.status, 401);
        assert_eq!(ada.get("/signed", &[("authorization", "Basic dTpw")]).await.status, 200);
    }

    #[tokio::test]
    async fn errors_have_the_shape_of_their_route() {
        let (served, ..) = served().await;
        assert!(served.client().get("/signed", &[]).await.json()["error"].is_string());
        let openai = served.client().get("/v1/key", &[("authorization", "Bearer x")]).await.json();
        assert_eq!(openai["error"]["code"], "invalid_api_key");
    }

    #[tokio::test]
    async fn garbage_in_cookies_is_never_a_5xx() {
        let (served, ..) = served().await;
        let long = format!("tollkeeper={}", "A".repeat(3000));
        for odd in [
            "tollkeeper=; tollkeeper=%00; =",
            &long,
            "tollkeeper=' OR 1=1 --",
            "tollkeeper=AAAAAAAAAAAAAAAAAAAAAA",
        ] {
            assert_eq!(served.client().get("/signed", &[("cookie", odd)]).await.status, 401, "{odd}");
        }
    }

    #[tokio::test]
    async fn a_removed_user_is_out_at_once() {
        let (served, ada, key) = served().await;
        served.site.run("UPDATE users SET removed_at_ms = 1").await;
        assert_eq!(ada.get("/signed", &[]).await.status, 401);
        assert_eq!(served.client().get("/v1/key", &[("authorization", &key)]).await.status, 401);
    }

    #[tokio::test]
    async fn the_address_is_the_peers_or_what_a_trusted_proxy_says() {
        let peer = |ip: &str| axum::Extension(ConnectInfo(SocketAddr::new(ip.parse().unwrap(), 4711)));
        let address = get(async |ClientAddress(address): ClientAddress| format!("{address:?}"));
        let routes = Router::new()
            .route("/proxy", address.clone().layer(peer("10.0.0.1")))
            .route("/stranger", address.clone().layer(peer("203.0.113.5")))
            .route("/unknown", address);
        let mut site = Site::open().await;
        let proxies = vec![Network::parse("10.0.0.1").unwrap()];
        site.identity = site.identity.with_trusted_proxies(proxies);
        let client = Served::on(site, routes).client();
        for (path, seen) in
            [("/proxy", "Some(1.1.1.1)"), ("/stranger", "Some(203.0.113.5)"), ("/unknown", "None")]
        {
            assert_eq!(client.get(path, &[("x-forwarded-for", "1.1.1.1")]).await.body, seen, "{path}");
        }
    }
}
