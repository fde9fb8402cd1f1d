//! The directory as the database has it.

use std::collections::BTreeMap;

use serde_json::Value;
use sqlx::AnyConnection;

/// Keyed by id, by e-mail address where it is users, by label where it is keys.
#[derive(Debug, Default)]
pub(super) struct Current {
    pub workspaces: BTreeMap<String, Workspace>,
    /// `rate_per_minute` and `daily_token_budget` by workspace. Others write the table too: a row may
    /// be there before its workspace is.
    pub limits: BTreeMap<String, (Option<i64>, Option<i64>)>,
    pub users: BTreeMap<String, User>,
    pub sources: BTreeMap<String, Source>,
    pub dashboards: BTreeMap<String, Dashboard>,
    pub platforms: BTreeMap<String, Platform>,
}

#[derive(Debug)]
pub(super) struct Workspace {
    pub name: String,
    pub managed: bool,
}

#[derive(Debug)]
pub(super) struct User {
    pub id: String,
    pub hash: Option<String>,
    pub admin: bool,
    pub managed: bool,
    pub removed: bool,
    /// By workspace.
    pub memberships: BTreeMap<String, Membership>,
}

#[derive(Debug)]
pub(super) struct Membership {
    pub role: String,
    pub managed: bool,
}

#[derive(Debug)]
pub(super) struct Source {
    pub workspace: String,
    pub name: String,
    pub kind: String,
    pub columns: Value,
    pub rows: Option<Value>,
    pub managed: bool,
}

#[derive(Debug)]
pub(super) struct Dashboard {
    pub workspace: String,
    pub source: String,
    pub name: String,
    pub managed: bool,
}

#[derive(Debug)]
pub(super) struct Platform {
    pub base_url: String,
    pub position: i64,
    pub managed: bool,
    pub keys: BTreeMap<String, Key>,
    pub models: BTreeMap<String, Model>,
}

#[derive(Debug)]
pub(super) struct Key {
    pub id: String,
    pub sealed: String,
    pub enabled: bool,
    pub position: i64,
    pub managed: bool,
}

#[derive(Debug)]
pub(super) struct Model {
    pub alias: String,
    /// rpm, rpd, tpm, tpd.
    pub limits: [Option<i64>; 4],
    pub priority: i64,
    pub position: i64,
    pub managed: bool,
}

type ModelColumns =
    (String, String, String, Option<i64>, Option<i64>, Option<i64>, Option<i64>, i64, i64, i64);

impl Current {
    /// Reads all of it; inside a transaction that writes, nobody changes it meanwhile.
    pub(super) async fn load(db: &mut AnyConnection) -> Result<Self, sqlx::Error> {
        let mut current = Current::default();
        current.load_workspaces(db).await?;
        current.load_users(db).await?;
        current.load_content(db).await?;
        current.load_platforms(db).await?;
        Ok(current)
    }

    async fn load_workspaces(&mut self, db: &mut AnyConnection) -> Result<(), sqlx::Error> {
        let rows: Vec<(String, String, i64)> =
            sqlx::query_as("SELECT id, name, managed FROM workspaces").fetch_all(&mut *db).await?;
        for (id, name, managed) in rows {
            self.workspaces.insert(id, Workspace { name, managed: managed != 0 });
        }
        let rows: Vec<(String, Option<i64>, Option<i64>)> =
            sqlx::query_as("SELECT workspace_id, rate_per_minute, daily_token_budget FROM workspace_limits")
                .fetch_all(&mut *db)
                .await?;
        self.limits = rows.into_iter().map(|(id, rate, budget)| (id, (rate, budget))).collect();
        Ok(())
    }

    async fn load_users(&mut self, db: &mut AnyConnection) -> Result<(), sqlx::Error> {
        type Columns = (String, String, Option<String>, i64, i64, Option<i64>);
        let rows: Vec<Columns> =
            sqlx::query_as("SELECT id, email, password_hash, admin, managed, removed_at_ms FROM users")
                .fetch_all(&mut *db)
                .await?;
        let mut emails = BTreeMap::new();
        for (id, email, hash, admin, managed, removed) in rows {
            emails.insert(id.clone(), email.clone());
            let user = User {
                id,
                hash,
                admin: admin != 0,
                managed: managed != 0,
                removed: removed.is_some(),
                memberships: BTreeMap::new(),
            };
            self.users.insert(email, user);
        }
        let rows: Vec<(String, String, String, i64)> =
            sqlx::query_as("SELECT user_id, workspace_id, role, managed FROM memberships")
                .fetch_all(&mut *db)
                .await?;
        for (user, workspace, role, managed) in rows {
            if let Some(user) = emails.get(&user).and_then(|email| self.users.get_mut(email)) {
                user.memberships.insert(workspace, Membership { role, managed: managed != 0 });
            }
        }
        Ok(())
    }

    async fn load_content(&mut self, db: &mut AnyConnection) -> Result<(), sqlx::Error> {
        type Columns = (String, String, String, String, String, Option<String>, i64);
        let rows: Vec<Columns> =
            sqlx::query_as("SELECT id, workspace_id, name, kind, columns, inline_rows, managed FROM sources")
                .fetch_all(&mut *db)
                .await?;
        for (id, workspace, name, kind, columns, rows, managed) in rows {
            // What can't be read differs from what the file says, and is written anew.
            let json = |text: String| serde_json::from_str(&text).unwrap_or(Value::Null);
            let (columns, rows) = (json(columns), rows.map(json));
            self.sources.insert(id, Source { workspace, name, kind, columns, rows, managed: managed != 0 });
        }
        let rows: Vec<(String, String, String, String, i64)> =
            sqlx::query_as("SELECT id, workspace_id, source_id, name, managed FROM dashboards")
                .fetch_all(&mut *db)
                .await?;
        for (id, workspace, source, name, managed) in rows {
            self.dashboards.insert(id, Dashboard { workspace, source, name, managed: managed != 0 });
        }
        Ok(())
    }

    async fn load_platforms(&mut self, db: &mut AnyConnection) -> Result<(), sqlx::Error> {
        let rows: Vec<(String, String, i64, i64)> =
            sqlx::query_as("SELECT id, base_url, position, managed FROM platforms")
                .fetch_all(&mut *db)
                .await?;
        for (id, base_url, position, managed) in rows {
            let (keys, models) = (BTreeMap::new(), BTreeMap::new());
            self.platforms.insert(id, Platform { base_url, position, managed: managed != 0, keys, models });
        }
        let rows: Vec<(String, String, String, String, i64, i64, i64)> = sqlx::query_as(
            "SELECT id, platform_id, label, sealed, enabled, position, managed FROM platform_keys",
        )
        .fetch_all(&mut *db)
        .await?;
        for (id, platform, label, sealed, enabled, position, managed) in rows {
            if let Some(platform) = self.platforms.get_mut(&platform) {
                let (enabled, managed) = (enabled != 0, managed != 0);
                platform.keys.insert(label, Key { id, sealed, enabled, position, managed });
            }
        }
        let rows: Vec<ModelColumns> = sqlx::query_as(
            "SELECT platform_id, model_id, alias, rpm, rpd, tpm, tpd, priority, position, managed
             FROM platform_models",
        )
        .fetch_all(&mut *db)
        .await?;
        for (platform, id, alias, rpm, rpd, tpm, tpd, priority, position, managed) in rows {
            let limits = [rpm, rpd, tpm, tpd];
            if let Some(platform) = self.platforms.get_mut(&platform) {
                platform
                    .models
                    .insert(id, Model { alias, limits, priority, position, managed: managed != 0 });
            }
        }
        Ok(())
    }
}
