//! The audit trail's page.

use leptos::prelude::*;
use leptos::server_fn;
use tollkeeper::model::reports::{AuditPage, AuditQuery};

use super::PageError;
#[cfg(feature = "ssr")]
use super::request;

#[server(name = ReadAudit, endpoint = "read-audit", input = server_fn::codec::GetUrl)]
pub(crate) async fn read_audit(query: AuditQuery) -> Result<AuditPage, PageError> {
    let page = async {
        request::caller().await?.require_admin()?;
        request::services().reports.audit_page(&query).await
    };
    request::read(page.await)
}
