//! Sources and dashboards.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::current::{self, Current};
use super::report::{Settings, settings};
use super::{ApplyError, Run, Subject};
use crate::directory::file::{self, File};
use crate::model::dashboard::{Column, Spec};

type Done = Result<(), ApplyError>;

pub(super) async fn put_sources(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    for wanted in &file.sources {
        let subject = Subject::new("source", &wanted.id, Some(&wanted.workspace.value));
        let columns = json!(wanted.columns);
        let rows = wanted.rows.as_ref().map(|rows| json!(rows));
        let mut after = source_settings(
            &wanted.id,
            &wanted.workspace.value,
            &wanted.name,
            wanted.kind.as_str(),
            &columns,
            rows.as_ref(),
            true,
        );
        match current.sources.get(&wanted.id) {
            None => {
                write_source(run, wanted, &columns, rows.as_ref()).await?;
                run.added(subject, after).await?;
            }
            Some(is) => {
                let before = settings_of(&wanted.id, is);
                if is.rows != rows {
                    after.insert("content".into(), "changed".into());
                }
                if before != after {
                    write_source(run, wanted, &columns, rows.as_ref()).await?;
                    run.changed(subject, before, after).await?;
                }
            }
        }
    }
    Ok(())
}

fn settings_of(id: &str, is: &current::Source) -> Settings {
    source_settings(id, &is.workspace, &is.name, &is.kind, &is.columns, is.rows.as_ref(), is.managed)
}

/// Rows are content: the trail has their number alone.
fn source_settings(
    id: &str,
    workspace: &str,
    name: &str,
    kind: &str,
    columns: &Value,
    rows: Option<&Value>,
    managed: bool,
) -> Settings {
    let rows = rows.map(|rows| rows.as_array().map_or(0, Vec::len));
    settings(json!({
        "source": id, "workspace": workspace, "name": name, "kind": kind, "columns": columns, "rows": rows,
        "managed": managed,
    }))
}

async fn write_source(
    run: &mut Run<'_>,
    wanted: &file::Source,
    columns: &Value,
    rows: Option<&Value>,
) -> Done {
    sqlx::query(
        "INSERT INTO sources (id, workspace_id, name, kind, columns, inline_rows, managed, created_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, 1, $7)
         ON CONFLICT (id) DO UPDATE SET
           workspace_id = excluded.workspace_id, name = excluded.name, kind = excluded.kind,
           columns = excluded.columns, inline_rows = excluded.inline_rows, managed = 1",
    )
    .bind(&wanted.id)
    .bind(&wanted.workspace.value)
    .bind(&wanted.name)
    .bind(wanted.kind.as_str())
    .bind(columns.to_string())
    .bind(rows.map(Value::to_string))
    .bind(run.now.ms())
    .execute(&mut *run.tx)
    .await?;
    Ok(())
}

pub(super) async fn put_dashboards(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    for wanted in &file.dashboards {
        let subject = Subject::new("dashboard", &wanted.id, Some(&wanted.workspace.value));
        let (workspace, source) = (&wanted.workspace.value, &wanted.source.value);
        let mut after = dashboard_settings(&wanted.id, workspace, source, &wanted.name, true);
        let Some(is) = current.dashboards.get(&wanted.id) else {
            write_dashboard(run, wanted).await?;
            run.added(subject, after).await?;
            continue;
        };
        let before = dashboard_settings(&wanted.id, &is.workspace, &is.source, &is.name, is.managed);
        if before != after {
            write_dashboard(run, wanted).await?;
            if is.source != *source && clear_unfit_spec(run, &wanted.id).await? {
                after.insert("spec".into(), "cleared".into());
            }
            run.changed(subject, before, after).await?;
        }
    }
    check_owners(file, current)
}

fn dashboard_settings(id: &str, workspace: &str, source: &str, name: &str, managed: bool) -> Settings {
    settings(json!({
        "dashboard": id, "workspace": workspace, "source": source, "name": name, "managed": managed,
    }))
}

async fn write_dashboard(run: &mut Run<'_>, wanted: &file::Dashboard) -> Done {
    sqlx::query(
        "INSERT INTO dashboards (id, workspace_id, source_id, name, managed, created_at_ms)
         VALUES ($1, $2, $3, $4, 1, $5)
         ON CONFLICT (id) DO UPDATE SET
           workspace_id = excluded.workspace_id, source_id = excluded.source_id, name = excluded.name, managed = 1",
    )
    .bind(&wanted.id)
    .bind(&wanted.workspace.value)
    .bind(&wanted.source.value)
    .bind(&wanted.name)
    .bind(run.now.ms())
    .execute(&mut *run.tx)
    .await?;
    Ok(())
}

/// A dashboard that was given another source can't keep a spec that names columns of the old one.
async fn clear_unfit_spec(run: &mut Run<'_>, dashboard: &str) -> Result<bool, ApplyError> {
    let (spec, columns): (Option<String>, String) = sqlx::query_as(
        "SELECT dashboards.spec, sources.columns FROM dashboards JOIN sources ON sources.id = dashboards.source_id
         WHERE dashboards.id = $1",
    )
    .bind(dashboard)
    .fetch_one(&mut *run.tx)
    .await?;
    let Some(spec) = spec else { return Ok(false) };
    let columns: Vec<Column> = serde_json::from_str(&columns).unwrap_or_default();
    if serde_json::from_str::<Spec>(&spec).is_ok_and(|spec| spec.check(&columns).is_ok()) {
        return Ok(false);
    }
    sqlx::query("UPDATE dashboards SET spec = NULL WHERE id = $1")
        .bind(dashboard)
        .execute(&mut *run.tx)
        .await?;
    Ok(true)
}

/// A dashboard made elsewhere must not lose its source, nor see it move to another workspace.
fn check_owners(file: &File, current: &Current) -> Done {
    let ours: HashSet<&str> = file.dashboards.iter().map(|dashboard| dashboard.id.as_str()).collect();
    let sources: HashMap<&str, &str> =
        file.sources.iter().map(|source| (source.id.as_str(), source.workspace.value.as_str())).collect();
    for (id, dashboard) in &current.dashboards {
        if dashboard.managed || ours.contains(id.as_str()) {
            continue;
        }
        let source = dashboard.source.as_str();
        let fate = match (sources.get(source), current.sources.get(source)) {
            (Some(owner), _) if *owner != dashboard.workspace => "moved to another workspace",
            (None, Some(is)) if is.managed => "removed",
            _ => continue,
        };
        return Err(ApplyError::Refused(format!(
            "the source \"{source}\" can't be {fate}: the dashboard \"{id}\", which no file made, shows it; remove \
             that first or leave the source as it is. Nothing was changed"
        )));
    }
    Ok(())
}

pub(super) async fn drop_dashboards(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    let kept: HashSet<&str> = file.dashboards.iter().map(|dashboard| dashboard.id.as_str()).collect();
    for (id, is) in current.dashboards.iter().filter(|(id, _)| !kept.contains(id.as_str())) {
        if !is.managed {
            run.report.left(&format!("dashboard {id}"));
            continue;
        }
        sqlx::query("DELETE FROM dashboards WHERE id = $1").bind(id).execute(&mut *run.tx).await?;
        let before = dashboard_settings(id, &is.workspace, &is.source, &is.name, true);
        run.removed(Subject::new("dashboard", id, Some(&is.workspace)), before).await?;
    }
    Ok(())
}

pub(super) async fn drop_sources(run: &mut Run<'_>, file: &File, current: &Current) -> Done {
    let kept: HashSet<&str> = file.sources.iter().map(|source| source.id.as_str()).collect();
    for (id, is) in current.sources.iter().filter(|(id, _)| !kept.contains(id.as_str())) {
        if !is.managed {
            run.report.left(&format!("source {id}"));
            continue;
        }
        sqlx::query("DELETE FROM sources WHERE id = $1").bind(id).execute(&mut *run.tx).await?;
        run.removed(Subject::new("source", id, Some(&is.workspace)), settings_of(id, is)).await?;
    }
    Ok(())
}
