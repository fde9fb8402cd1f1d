//! What the admin sees of the pool: every platform, model and key with its counts.

use serde::Serialize;
use utoipa::ToSchema;

use super::book::{Gauge, Kind};
use super::catalog::Candidate;
use super::link::StatedLimits;
use super::quotas::Standing;
use crate::model::Timestamp;

/// A row of `GET /api/admin/providers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProviderRow {
    pub platform: String,
    /// The upstream's id, without the platform.
    pub model: String,
    pub key_id: String,
    pub key_label: String,
    /// Requests of the last 60 seconds.
    pub rpm: QuotaRow,
    /// Requests of the last 24 hours.
    pub rpd: QuotaRow,
    /// Tokens of the last 60 seconds.
    pub tpm: QuotaRow,
    /// Tokens of the last 24 hours.
    pub tpd: QuotaRow,
    /// Requests of this key over all models since 00:00 UTC.
    pub provider_day: QuotaRow,
    /// Until when the candidate is left alone, if it is; the last millisecond of the year 9999 where
    /// it is until its key is changed or the cooldown is cleared.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cooldown_until: Option<Timestamp>,
    /// Calls that have been begun and not ended.
    pub in_flight: u64,
}

/// A count and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct QuotaRow {
    pub used: u64,
    /// `null` is unlimited.
    pub limit: Option<u64>,
}

/// A row with what the page shows beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderDetail {
    pub row: ProviderRow,
    /// Why the candidate is left alone, as the end of a sentence that begins with its name.
    pub cooldown_reason: Option<String>,
    /// Requests and tokens held by calls in flight.
    pub held_requests: u64,
    pub held_tokens: u64,
    /// What the provider says of its own limits.
    pub stated: StatedLimits,
}

impl ProviderDetail {
    pub(super) fn new(candidate: &Candidate, standing: &Standing) -> Self {
        let gauge = |kind: Kind| standing.gauges.iter().find(|gauge| gauge.kind == kind);
        let held = |kind| gauge(kind).map_or(0, |gauge| gauge.in_flight);
        let quota = |kind| gauge(kind).map_or(QuotaRow { used: 0, limit: None }, QuotaRow::from);
        ProviderDetail {
            row: ProviderRow {
                platform: candidate.id.platform.to_string(),
                model: candidate.id.model.to_string(),
                key_id: candidate.id.key.to_string(),
                key_label: candidate.key_label.to_string(),
                rpm: quota(Kind::Rpm),
                rpd: quota(Kind::Rpd),
                tpm: quota(Kind::Tpm),
                tpd: quota(Kind::Tpd),
                provider_day: quota(Kind::ProviderDay),
                cooldown_until: standing.cooldown.map(|cooldown| cooldown.until),
                in_flight: standing.in_flight,
            },
            cooldown_reason: standing.cooldown.map(|cooldown| cooldown.reason.sentence()),
            held_requests: held(Kind::Rpm),
            held_tokens: held(Kind::Tpm),
            stated: standing.stated,
        }
    }
}

impl From<&Gauge> for QuotaRow {
    fn from(gauge: &Gauge) -> Self {
        QuotaRow { used: gauge.used, limit: gauge.limit }
    }
}
