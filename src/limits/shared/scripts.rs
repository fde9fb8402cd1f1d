//! The scripts that Redis runs, and the names of the keys that they are given.

use ::redis::Script;

use crate::model::WorkspaceId;
use crate::redis::{self, escaped};

pub(super) struct Scripts {
    pub decide: Script,
    pub peek: Script,
    pub give_back: Script,
    pub reading: Script,
    pub release: Script,
    pub renew: Script,
}

impl Scripts {
    /// With what tells them the time.
    pub(super) fn new(clock: &str) -> Self {
        let script = |body: &str| redis::script(clock, &[include_str!("bucket.lua"), body]);
        Self {
            decide: script(include_str!("decide.lua")),
            peek: script(include_str!("peek.lua")),
            give_back: script(include_str!("give_back.lua")),
            reading: script(include_str!("reading.lua")),
            release: script(include_str!("release.lua")),
            renew: script(include_str!("renew.lua")),
        }
    }
}

/// The keys of one workspace: in a cluster they stand together, as a script's keys must.
pub(super) struct Keys(String);

impl Keys {
    pub(super) fn of(workspace: &WorkspaceId) -> Self {
        Self(format!("tollkeeper:{{{}}}", escaped(workspace.as_str())))
    }

    pub(super) fn bucket(&self, user: &str) -> String {
        format!("{}:bucket:{}", self.0, escaped(user))
    }

    pub(super) fn reservations(&self) -> String {
        format!("{}:reservations", self.0)
    }

    pub(super) fn settlements(&self) -> String {
        format!("{}:settlements", self.0)
    }

    pub(super) fn numbers(&self) -> String {
        format!("{}:numbers", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ids_make_one_key() {
        let key = |workspace: &str, user: &str| Keys::of(&workspace.into()).bucket(user);
        assert_eq!(key("acme", "u_1"), "tollkeeper:{acme}:bucket:u_1");
        assert_ne!(key("a}:bucket:x", "y"), key("a", "x:bucket:y"));
        assert_ne!(key("a", "x%3A"), key("a", "x:"));
        assert_eq!(key("ä{}", " "), "tollkeeper:{%C3%A4%7B%7D}:bucket:%20");
    }
}
