//! Which address a request comes from, when proxies stand in front of the server.

use std::net::IpAddr;

use axum::http::HeaderMap;

use crate::config::Network;

/// The proxies whose `X-Forwarded-For` is believed.
#[derive(Default)]
pub(super) struct TrustedProxies(pub(super) Vec<Network>);

impl TrustedProxies {
    /// Walks from the peer through the header's entries, the last first, as long as whoever wrote
    /// the entry is trusted. An entry that is no address ends the walk: what stands before it could
    /// be the client's own invention.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let lines: Vec<&str> =
            headers.get_all("x-forwarded-for").iter().map(|line| line.to_str().unwrap_or("")).collect();
        for entry in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
            if !self.0.iter().any(|network| network.contains(client)) {
                break;
            }
            let Ok(before) = entry.trim().parse::<IpAddr>() else {
                break;
            };
            client = before.to_canonical();
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_who_the_last_trusted_proxy_names() {
        let networks = ["10.0.0.0/8", "192.168.1.1", "::1"].map(|text| Network::parse(text).unwrap());
        let proxies = TrustedProxies(networks.to_vec());
        let client = |peer: &str, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            proxies.client(peer.parse().unwrap(), &headers).to_string()
        };
        assert_eq!(client("203.0.113.5", &["1.1.1.1"]), "203.0.113.5", "a stranger is not believed");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(
            client("10.0.0.1", &["6.6.6.6, 1.1.1.1"]),
            "1.1.1.1",
            "what the client wrote is not believed"
        );
        assert_eq!(client("10.0.0.1", &["6.6.6.6, 1.1.1.1, 10.0.0.2"]), "1.1.1.1");
        assert_eq!(client("10.0.0.1", &["6.6.6.6", "1.1.1.1,192.168.1.1"]), "1.1.1.1");
        assert_eq!(client("::ffff:10.0.0.1", &["2001:db8::7"]), "2001:db8::7");
        for odd in ["not, an, address", "", "1.1.1.1, unknown", "1.1.1.1:99"] {
            assert_eq!(client("10.0.0.1", &[odd]), "10.0.0.1", "{odd}");
        }
    }
}
