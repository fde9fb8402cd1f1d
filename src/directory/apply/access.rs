//! Workspaces with their limits, users with their memberships.

use std::collections::{HashMap, HashSet};

use serde_json::json;

use super::current::{self, Current};
use super::report::{Settings, settings};
use super::{ApplyError, Run, Subject};
use crate::audit::Actor;
use crate::directory::file::{self, File};
use crate::identity::{end_sessions_of, new_user_id};
use crate::limits::overrides;
use crate::model::limit::LimitChange;
use crate::model::{Role, Setting, WorkspaceId};

type Done = Result<(), ApplyError>;

pub(super) async fn put_workspaces(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    for wanted in &file.workspaces {
        let id = wanted.id.as_str();
        let subject = Subject::new("workspace", id, Some(id));
        let after = settings(json!({ "name": wanted.name, "managed": true }));
        match current.workspaces.get(id) {
            None => {
                sqlx::query(
                    "INSERT INTO workspaces (id, name, managed, created_at_ms) VALUES ($1, $2, 1, $3)",
                )
                .bind(id)
                .bind(&wanted.name)
                .bind(run.now.ms())
                .execute(&mut *run.tx)
                .await?;
                run.added(subject, after).await?;
            }
            Some(is) => {
                let before = settings(json!({ "name": is.name, "managed": is.managed }));
                if before != after {
                    sqlx::query("UPDATE workspaces SET name = $1, managed = 1 WHERE id = $2")
                        .bind(&wanted.name)
                        .bind(id)
                        .execute(&mut *run.tx)
                        .await?;
                    run.changed(subject, before, after).await?;
                }
            }
        }
        put_limits(run, wanted, current).await?;
    }
    Ok(())
}

/// An override that the file doesn't name is taken back; where there is none, no row is made.
async fn put_limits(run: &mut Run<'_>, wanted: &file::Workspace, current: &Current) -> Done {
    let id = wanted.id.as_str();
    let is = current.limits.get(id).copied().unwrap_or_default();
    let limits = (wanted.rate, wanted.budget);
    if is == limits {
        return Ok(());
    }
    run.report.changed(&format!("workspace {id}"), &limit_settings(is), &limit_settings(limits));
    set_limits(run, id, limits).await
}

/// A dry run goes without: nothing that follows reads the limits, and the change would be logged.
async fn set_limits(run: &mut Run<'_>, workspace: &str, (rate, budget): (Option<i64>, Option<i64>)) -> Done {
    if run.dry_run {
        return Ok(());
    }
    let change =
        LimitChange { rate: Some(Setting::from_stored(rate)), budget: Some(Setting::from_stored(budget)) };
    let workspace = WorkspaceId::from(workspace);
    overrides::change_in(&mut run.tx, run.now, &Actor::Apply, &workspace, change).await?;
    Ok(())
}

fn limit_settings((rate, budget): (Option<i64>, Option<i64>)) -> Settings {
    settings(json!({ "rate_per_minute": rate, "daily_token_budget": budget }))
}

/// `hashes`: by e-mail address, for every user of the file.
pub(super) async fn put_users(
    run: &mut Run<'_>,
    file: &File,
    current: &Current,
    hashes: &HashMap<String, String>,
) -> Done {
    for wanted in &file.users {
        let subject = Subject::new("user", &wanted.email, None);
        let hash = hashes.get(&wanted.email).map(String::as_str);
        let mut after = user_settings(&wanted.email, wanted.admin, true, false);
        let is = current.users.get(&wanted.email);
        let id = match is {
            None => {
                let id = new_user_id().as_str().to_owned();
                sqlx::query(
                    "INSERT INTO users (id, email, password_hash, admin, managed, created_at_ms)
                     VALUES ($1, $2, $3, $4, 1, $5)",
                )
                .bind(&id)
                .bind(&wanted.email)
                .bind(hash)
                .bind(i64::from(wanted.admin))
                .bind(run.now.ms())
                .execute(&mut *run.tx)
                .await?;
                run.added(subject, after).await?;
                id
            }
            Some(is) => {
                let before = user_settings(&wanted.email, is.admin, is.managed, is.removed);
                let new_password = is.hash.as_deref() != hash;
                if new_password {
                    after.insert("password".into(), "changed".into());
                }
                if before != after {
                    change_user(run, &is.id, hash, wanted.admin, new_password).await?;
                    run.changed(subject, before, after).await?;
                }
                is.id.clone()
            }
        };
        put_memberships(run, wanted, &id, is).await?;
    }
    Ok(())
}

fn user_settings(email: &str, admin: bool, managed: bool, removed: bool) -> Settings {
    settings(json!({ "user": email, "admin": admin, "managed": managed, "removed": removed }))
}

async fn change_user(
    run: &mut Run<'_>,
    id: &str,
    hash: Option<&str>,
    admin: bool,
    new_password: bool,
) -> Done {
    sqlx::query(
        "UPDATE users SET password_hash = $1, admin = $2, managed = 1, removed_at_ms = NULL WHERE id = $3",
    )
    .bind(hash)
    .bind(i64::from(admin))
    .bind(id)
    .execute(&mut *run.tx)
    .await?;
    // Who signed in with the old password has to know the new one.
    if new_password {
        end_sessions_of(&mut run.tx, &id.into()).await?;
    }
    Ok(())
}

async fn put_memberships(
    run: &mut Run<'_>,
    wanted: &file::User,
    user: &str,
    is: Option<&current::User>,
) -> Done {
    for (workspace, role) in &wanted.memberships {
        let workspace = workspace.value.as_str();
        let subject = membership(&wanted.email, workspace);
        let after = membership_settings(&wanted.email, role.as_str(), true);
        match is.and_then(|is| is.memberships.get(workspace)) {
            None => {
                write_membership(run, user, workspace, *role).await?;
                run.added(subject, after).await?;
            }
            Some(is) => {
                let before = membership_settings(&wanted.email, &is.role, is.managed);
                if before != after {
                    write_membership(run, user, workspace, *role).await?;
                    run.changed(subject, before, after).await?;
                }
            }
        }
    }
    let kept: HashSet<&str> =
        wanted.memberships.iter().map(|(workspace, _)| workspace.value.as_str()).collect();
    for (workspace, is) in is.into_iter().flat_map(|is| &is.memberships) {
        if kept.contains(workspace.as_str()) {
            continue;
        }
        if is.managed {
            sqlx::query("DELETE FROM memberships WHERE user_id = $1 AND workspace_id = $2")
                .bind(user)
                .bind(workspace)
                .execute(&mut *run.tx)
                .await?;
            let before = membership_settings(&wanted.email, &is.role, true);
            run.removed(membership(&wanted.email, workspace), before).await?;
        } else {
            run.report.left(&membership(&wanted.email, workspace).what);
        }
    }
    Ok(())
}

async fn write_membership(run: &mut Run<'_>, user: &str, workspace: &str, role: Role) -> Done {
    sqlx::query(
        "INSERT INTO memberships (user_id, workspace_id, role, managed) VALUES ($1, $2, $3, 1)
         ON CONFLICT (user_id, workspace_id) DO UPDATE SET role = excluded.role, managed = 1",
    )
    .bind(user)
    .bind(workspace)
    .bind(role.as_str())
    .execute(&mut *run.tx)
    .await?;
    Ok(())
}

fn membership<'a>(email: &str, workspace: &'a str) -> Subject<'a> {
    let what = format!("membership of {email} in {workspace}");
    Subject { noun: "membership", what, workspace: Some(workspace) }
}

fn membership_settings(email: &str, role: &str, managed: bool) -> Settings {
    settings(json!({ "user": email, "role": role, "managed": managed }))
}

/// A user keeps the row, so that the usage keeps its name, and loses every way in: sessions, keys and
/// memberships, wherever they were made.
pub(super) async fn drop_users(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    let kept: HashSet<&str> = file.users.iter().map(|user| user.email.as_str()).collect();
    for (email, is) in &current.users {
        if kept.contains(email.as_str()) || is.removed {
            continue;
        }
        if !is.managed {
            run.report.left(&format!("user {email}"));
            continue;
        }
        for sql in [
            "UPDATE users SET removed_at_ms = $1 WHERE id = $2",
            "UPDATE api_keys SET revoked_at_ms = $1 WHERE user_id = $2 AND revoked_at_ms IS NULL",
        ] {
            sqlx::query(sql).bind(run.now.ms()).bind(&is.id).execute(&mut *run.tx).await?;
        }
        sqlx::query("DELETE FROM memberships WHERE user_id = $1").bind(&is.id).execute(&mut *run.tx).await?;
        end_sessions_of(&mut run.tx, &is.id.as_str().into()).await?;
        for (workspace, was) in &is.memberships {
            run.removed(membership(email, workspace), membership_settings(email, &was.role, was.managed))
                .await?;
        }
        let before = user_settings(email, is.admin, true, false);
        run.removed(Subject::new("user", email, None), before).await?;
    }
    Ok(())
}

pub(super) async fn drop_workspaces(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    let kept: HashSet<&str> = file.workspaces.iter().map(|workspace| workspace.id.as_str()).collect();
    for (id, is) in &current.workspaces {
        if kept.contains(id.as_str()) {
            continue;
        }
        if !is.managed {
            run.report.left(&format!("workspace {id}"));
            continue;
        }
        check_empty(run, id).await?;
        // The trail's last word on the limits is that there are none, should the id come back.
        set_limits(run, id, (None, None)).await?;
        for sql in
            ["DELETE FROM workspace_limits WHERE workspace_id = $1", "DELETE FROM workspaces WHERE id = $1"]
        {
            sqlx::query(sql).bind(id).execute(&mut *run.tx).await?;
        }
        let before = settings(json!({ "name": is.name, "managed": true }));
        run.removed(Subject::new("workspace", id, Some(id)), before).await?;
    }
    Ok(())
}

/// What the file made in the workspace is gone by now; what is left was made elsewhere.
async fn check_empty(run: &mut Run<'_>, workspace: &str) -> Done {
    let left: Option<(String, String)> = sqlx::query_as(
        "SELECT 'dashboard', id FROM dashboards WHERE workspace_id = $1
         UNION ALL SELECT 'source', id FROM sources WHERE workspace_id = $1
         UNION ALL SELECT 'member', users.email FROM memberships JOIN users ON users.id = memberships.user_id
           WHERE memberships.workspace_id = $1
         LIMIT 1",
    )
    .bind(workspace)
    .fetch_optional(&mut *run.tx)
    .await?;
    match left {
        None => Ok(()),
        Some((kind, id)) => Err(ApplyError::Refused(format!(
            "the workspace \"{workspace}\" can't be removed: it still has the {kind} \"{id}\", which no file made; \
             remove that first or keep the workspace in the file. Nothing was changed"
        ))),
    }
}
