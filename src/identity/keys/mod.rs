//! API keys: made, listed, revoked, and looked up.
//!
//! A key in use is looked up in the database every half second, so that what another process changes (the key,
//! its user, their role) is seen within a second; what this process revokes is seen at once.

mod cache;
mod create;
mod form;
mod lookup;
mod manage;

pub(super) use cache::KeyCache;
pub use create::{CreatedKey, NewKey};
pub(super) use manage::delete_long_revoked;

#[cfg(test)]
mod testing {
    use super::{CreatedKey, NewKey};
    use crate::audit::Actor;
    use crate::identity::testing::Site;
    use crate::model::{Error, Role};

    /// Two workspaces, and Ada: editor of `acme`, viewer of `globex`.
    pub(super) async fn site() -> Site {
        let site = Site::open().await;
        site.workspace("acme").await;
        site.workspace("globex").await;
        site.user("ada@example.com", false, &[("acme", Role::Editor), ("globex", Role::Viewer)]).await;
        site
    }

    pub(super) async fn create(site: &Site, email: &str, workspace: &str) -> Result<CreatedKey, Error> {
        let new = NewKey { email, workspace: &workspace.into(), name: "ci", expires_at: None };
        site.identity.create_key(&Actor::Cli, new).await
    }
}
