//! What pages do in the browser beyond views: requests to the JSON API, answers read as they come.

pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod live;
