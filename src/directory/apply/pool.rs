//! Platforms with their keys and models. Any change here bumps the pool's version, by which a running
//! server notices it.

use std::collections::HashSet;

use super::current::{self, Current};
use super::report::Settings;
use super::{ApplyError, Run, Subject};
use crate::directory::file::{File, Model, Platform, Secret};
use crate::providers::records::{self, key_settings, new_key_id, platform_settings};

type Done = Result<(), ApplyError>;

pub(super) async fn put_platforms(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    for (wanted, position) in file.platforms.iter().zip(0..) {
        let is = current.platforms.get(&wanted.id);
        put_platform(run, wanted, position, is).await?;
        for ((label, secret), position) in wanted.keys.iter().zip(0..) {
            put_key(run, &wanted.id, label, secret, position, is.and_then(|is| is.keys.get(label))).await?;
        }
        for (model, position) in wanted.models.iter().zip(0..) {
            put_model(run, &wanted.id, model, position, is.and_then(|is| is.models.get(&model.id))).await?;
        }
        if let Some(is) = is {
            drop_parts(run, wanted, is).await?;
        }
    }
    Ok(())
}

async fn put_platform(
    run: &mut Run<'_>,
    wanted: &Platform,
    position: i64,
    is: Option<&current::Platform>,
) -> Done {
    let after = platform_settings(&wanted.id, &wanted.base_url, position, true);
    let before = is.map(|is| platform_settings(&wanted.id, &is.base_url, is.position, is.managed));
    if before.as_ref() == Some(&after) {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO platforms (id, base_url, position, managed) VALUES ($1, $2, $3, 1)
         ON CONFLICT (id) DO UPDATE SET base_url = excluded.base_url, position = excluded.position, managed = 1",
    )
    .bind(&wanted.id)
    .bind(&wanted.base_url)
    .bind(position)
    .execute(&mut *run.tx)
    .await?;
    put(run, Subject::new("platform", &wanted.id, None), before, after).await
}

async fn put_key(
    run: &mut Run<'_>,
    platform: &str,
    label: &str,
    secret: &Secret,
    position: i64,
    is: Option<&current::Key>,
) -> Done {
    let id = is.map_or_else(new_key_id, |is| is.id.clone());
    let same_secret =
        is.is_some_and(|is| run.secret_key.open(&is.id, &is.sealed).as_deref() == Ok(secret.reveal()));
    let sealed = match is {
        Some(is) if same_secret => is.sealed.clone(),
        _ => run.secret_key.seal(&id, secret.reveal()),
    };
    let before = is.map(|is| key_settings(platform, label, is.enabled, is.position, is.managed));
    // The file has no switch: a key that was disabled stays so.
    let mut after = key_settings(platform, label, is.is_none_or(|is| is.enabled), position, true);
    if is.is_some() && !same_secret {
        after.insert("secret".into(), "changed".into());
    }
    if before.as_ref() == Some(&after) {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO platform_keys (id, platform_id, label, sealed, position, managed) VALUES ($1, $2, $3, $4, $5, 1)
         ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed, position = excluded.position, managed = 1",
    )
    .bind(&id)
    .bind(platform)
    .bind(label)
    .bind(sealed)
    .bind(position)
    .execute(&mut *run.tx)
    .await?;
    put(run, key_subject(platform, label), before, after).await
}

fn key_subject(platform: &str, label: &str) -> Subject<'static> {
    Subject { noun: "platform-key", what: format!("key {label} of platform {platform}"), workspace: None }
}

async fn put_model(
    run: &mut Run<'_>,
    platform: &str,
    wanted: &Model,
    position: i64,
    is: Option<&current::Model>,
) -> Done {
    let wanted_row = current::Model {
        alias: wanted.alias.clone(),
        limits: wanted.limits,
        priority: wanted.priority,
        position,
        managed: true,
    };
    let before = is.map(|is| model_settings(platform, &wanted.id, is));
    let after = model_settings(platform, &wanted.id, &wanted_row);
    if before.as_ref() == Some(&after) {
        return Ok(());
    }
    let [rpm, rpd, tpm, tpd] = wanted.limits;
    sqlx::query(
        "INSERT INTO platform_models
           (platform_id, model_id, alias, rpm, rpd, tpm, tpd, priority, position, managed)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)
         ON CONFLICT (platform_id, model_id) DO UPDATE SET
           alias = excluded.alias, rpm = excluded.rpm, rpd = excluded.rpd, tpm = excluded.tpm, tpd = excluded.tpd,
           priority = excluded.priority, position = excluded.position, managed = 1",
    )
    .bind(platform)
    .bind(&wanted.id)
    .bind(&wanted.alias)
    .bind(rpm)
    .bind(rpd)
    .bind(tpm)
    .bind(tpd)
    .bind(wanted.priority)
    .bind(position)
    .execute(&mut *run.tx)
    .await?;
    put(run, model_subject(platform, &wanted.id), before, after).await
}

fn model_subject(platform: &str, id: &str) -> Subject<'static> {
    Subject { noun: "platform-model", what: format!("model {id} of platform {platform}"), workspace: None }
}

fn model_settings(platform: &str, id: &str, model: &current::Model) -> Settings {
    let current::Model { alias, limits, priority, position, managed } = model;
    records::model_settings(platform, id, alias, *limits, *priority, *position, *managed)
}

/// Tells of a record that was written.
async fn put(run: &mut Run<'_>, subject: Subject<'_>, before: Option<Settings>, after: Settings) -> Done {
    run.pool_changed = true;
    match before {
        None => run.added(subject, after).await?,
        Some(before) => run.changed(subject, before, after).await?,
    }
    Ok(())
}

/// Keys and models that a platform of the file has no more.
async fn drop_parts(run: &mut Run<'_>, wanted: &Platform, is: &current::Platform) -> Done {
    let keys: HashSet<&str> = wanted.keys.iter().map(|(label, _)| label.as_str()).collect();
    for (label, key) in is.keys.iter().filter(|(label, _)| !keys.contains(label.as_str())) {
        drop_key(run, &wanted.id, label, key).await?;
    }
    let models: HashSet<&str> = wanted.models.iter().map(|model| model.id.as_str()).collect();
    for (id, model) in is.models.iter().filter(|(id, _)| !models.contains(id.as_str())) {
        drop_model(run, &wanted.id, id, model).await?;
    }
    Ok(())
}

async fn drop_key(run: &mut Run<'_>, platform: &str, label: &str, is: &current::Key) -> Done {
    let subject = key_subject(platform, label);
    if !is.managed {
        run.report.left(&subject.what);
        return Ok(());
    }
    run.pool_changed = true;
    sqlx::query("DELETE FROM platform_keys WHERE id = $1").bind(&is.id).execute(&mut *run.tx).await?;
    run.removed(subject, key_settings(platform, label, is.enabled, is.position, true)).await?;
    Ok(())
}

async fn drop_model(run: &mut Run<'_>, platform: &str, id: &str, is: &current::Model) -> Done {
    let subject = model_subject(platform, id);
    if !is.managed {
        run.report.left(&subject.what);
        return Ok(());
    }
    run.pool_changed = true;
    sqlx::query("DELETE FROM platform_models WHERE platform_id = $1 AND model_id = $2")
        .bind(platform)
        .bind(id)
        .execute(&mut *run.tx)
        .await?;
    run.removed(subject, model_settings(platform, id, is)).await?;
    Ok(())
}

/// Platforms that the file has no more, with what it made of them.
pub(super) async fn drop_platforms(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    let kept: HashSet<&str> = file.platforms.iter().map(|platform| platform.id.as_str()).collect();
    for (id, is) in current.platforms.iter().filter(|(id, _)| !kept.contains(id.as_str())) {
        for (label, key) in &is.keys {
            drop_key(run, id, label, key).await?;
        }
        for (model, row) in &is.models {
            drop_model(run, id, model, row).await?;
        }
        if !is.managed {
            run.report.left(&format!("platform {id}"));
            continue;
        }
        let foreign_key =
            is.keys.iter().find(|(_, key)| !key.managed).map(|(label, _)| format!("key \"{label}\""));
        let foreign_model =
            is.models.iter().find(|(_, row)| !row.managed).map(|(model, _)| format!("model \"{model}\""));
        if let Some(part) = foreign_key.or(foreign_model) {
            return Err(ApplyError::Refused(format!(
                "the platform \"{id}\" can't be removed: it still has the {part}, which no file made; remove that \
                 first or keep the platform in the file. Nothing was changed"
            )));
        }
        run.pool_changed = true;
        sqlx::query("DELETE FROM platforms WHERE id = $1").bind(id).execute(&mut *run.tx).await?;
        let before = platform_settings(id, &is.base_url, is.position, true);
        run.removed(Subject::new("platform", id, None), before).await?;
    }
    Ok(())
}
