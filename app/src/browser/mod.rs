//! What pages do in the browser beyond views.

pub(crate) mod live;
