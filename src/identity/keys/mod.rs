//! API keys: made, listed, revoked, and looked up.
//!
//! Every use is looked up in the database, so that a key made, revoked or orphaned by another
//! process is seen at once.

mod create;
mod form;
mod lookup;
mod manage;

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
