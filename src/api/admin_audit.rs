//! `GET /api/admin/audit`: the trail, newest first.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Query;
use super::auth::SettingsCaller;
use super::respond::{ApiResult, ErrorBody};
use crate::audit::{self, Entry};
use crate::model::{Day, Error, Timestamp};
use crate::services::Services;

const LIMIT: i64 = 50;
const LIMIT_MAX: i64 = 200;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Params {
    workspace: Option<String>,
    /// An e-mail address, `cli`, `apply` or `system`.
    actor: Option<String>,
    /// From this time (RFC 3339) or day (YYYY-MM-DD) on.
    from: Option<String>,
    /// Up to this time, excluded, or to the end of this day.
    to: Option<String>,
    /// Entries older than the one with this id.
    before: Option<i64>,
    /// 50 unless given, 200 at most.
    limit: Option<i64>,
}

#[utoipa::path(
    get, path = "/api/admin/audit", tag = "Admin", params(Params),
    responses((status = 200, body = Vec<Entry>), (status = 403, body = ErrorBody), (status = 422, body = ErrorBody))
)]
pub async fn handler(
    State(services): State<Services>,
    SettingsCaller(caller): SettingsCaller,
    Query(params): Query<Params>,
) -> ApiResult<Json<Vec<Entry>>> {
    caller.require_admin()?;
    let limit = params.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Error::Invalid(format!("limit has to be from 1 to {LIMIT_MAX}")).into());
    }
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let query = audit::Query {
        workspace: given(params.workspace).map(Into::into),
        actor: given(params.actor),
        from: time("from", given(params.from), Day::start)?,
        to: time("to", given(params.to), Day::end)?,
        before: params.before,
        after: None,
        limit,
    };
    Ok(Json(audit::list(&services.store, &query).await?))
}

fn time(name: &str, text: Option<String>, of_day: fn(Day) -> Timestamp) -> Result<Option<Timestamp>, Error> {
    let Some(text) = text else { return Ok(None) };
    // A plus sign of a time zone that was not escaped arrives as a blank.
    let text = text.replace(' ', "+");
    Timestamp::parse_rfc3339(&text)
        .or_else(|| Day::parse(&text).map(of_day))
        .map(Some)
        .ok_or_else(|| Error::Invalid(format!("{name} has to be an RFC 3339 time or a day, YYYY-MM-DD")))
}
