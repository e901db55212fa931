//! Leaf nodes as they are asked for: where other servers connect, and the servers that this one connects to.

use serde::Deserialize;

use super::options::TlsOptions;
use super::remote_tls::RemoteTlsOptions;
use crate::common::secret::Secret;

/// Links to other servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeafOptions {
    pub listener: Option<LeafListenerOptions>,
    pub remotes: Vec<LeafRemoteOptions>,
    /// The pause before a remote is connected to again.
    pub reconnect_ms: u64,
    /// The authorities that this machine trusts, for remotes that demand TLS without a configuration for it.
    pub system_ca_pem: String,
}

/// A port where other servers connect as leaf nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeafListenerOptions {
    pub host: String,
    /// 0 takes any free port.
    pub port: u16,
    pub tls: Option<TlsOptions>,
    /// Whether leaf nodes are asked who they are; else they belong to the global account.
    pub auth_required: bool,
    pub auth_timeout_ms: u64,
    /// `host:port` to advertise to leaf nodes instead of the address listened on; empty without.
    pub advertise: String,
    pub no_advertise: bool,
    pub compression: LeafCompression,
    pub compression_rtt_ms: Vec<u64>,
    /// Leaf nodes do not learn of each other's subscriptions.
    pub isolate: bool,
    /// The oldest version that may connect; empty allows all.
    pub min_version: String,
}

/// A server to connect to, by any of its addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeafRemoteOptions {
    pub urls: Vec<LeafUrl>,
    /// The account of this server that the link belongs to.
    pub account: String,
    pub jwt: Secret,
    /// Of the key that signs the other server's nonce.
    pub seed: Secret,
    pub tls: Option<RemoteTlsOptions>,
    /// This server is the hub, though it is the one that connects.
    pub hub: bool,
    /// Subjects that do not come in.
    pub deny_imports: Vec<String>,
    /// Subjects that do not go out.
    pub deny_exports: Vec<String>,
    pub compression: LeafCompression,
    pub compression_rtt_ms: Vec<u64>,
    /// Addresses are tried in the order given.
    pub no_randomize: bool,
    pub first_info_timeout_ms: u64,
    pub dial_timeout_ms: u64,
    pub websocket_compress: bool,
    pub websocket_no_masking: bool,
    /// This link does not learn of subscriptions behind other links.
    pub isolate: bool,
    /// The other server is asked to isolate its side as well.
    pub request_isolation: bool,
    /// Addresses that the other server names are not tried.
    pub ignore_discovered_servers: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeafUrl {
    pub host: String,
    pub port: u16,
    pub websocket: bool,
    pub tls: bool,
    pub path: String,
    pub user: String,
    pub password: Secret,
    pub token: Secret,
}

/// How a link is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeafCompression {
    #[default]
    Off,
    /// If the other side wants it.
    Accept,
    S2Fast,
    S2Better,
    S2Best,
    /// By the round trip time.
    S2Auto,
    /// In the format of S2, but as it is.
    S2Uncompressed,
}

impl LeafCompression {
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Accept => "accept",
            Self::S2Fast => "s2_fast",
            Self::S2Better => "s2_better",
            Self::S2Best => "s2_best",
            Self::S2Auto => "s2_auto",
            Self::S2Uncompressed => "s2_uncompressed",
        }
    }

    pub fn read(name: &str) -> Option<Self> {
        [
            Self::Off,
            Self::Accept,
            Self::S2Fast,
            Self::S2Better,
            Self::S2Best,
            Self::S2Auto,
            Self::S2Uncompressed,
        ]
        .into_iter()
        .find(|mode| mode.name() == name)
    }

    /// Whether bytes of such a link are in the format of S2.
    pub fn is_framed(self) -> bool {
        !matches!(self, Self::Off | Self::Accept)
    }

    /// What the two sides agree on: `self` is this side's wish, `theirs` what the other side announced.
    pub fn agree(self, theirs: Self) -> Self {
        match (self, theirs) {
            (Self::Off, _) | (_, Self::Off) | (Self::Accept, Self::Accept) => Self::Off,
            (Self::Accept, Self::S2Auto) => Self::S2Fast,
            (Self::Accept, theirs) => theirs,
            (own, _) => own,
        }
    }

    /// The level for a round trip time: the first threshold that is not exceeded counts.
    pub fn by_round_trip(round_trip_ms: u64, thresholds_ms: &[u64]) -> Self {
        let level = thresholds_ms
            .iter()
            .position(|threshold_ms| round_trip_ms <= *threshold_ms)
            .unwrap_or(match thresholds_ms.len() {
                count @ 0..3 => count.saturating_sub(1),
                _ => 3,
            });
        match level {
            0 => Self::S2Uncompressed,
            1 => Self::S2Fast,
            2 => Self::S2Better,
            _ => Self::S2Best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sides_agree_as_nats_servers_do() {
        use LeafCompression::*;
        for (own, theirs, agreed) in [
            (S2Auto, S2Auto, S2Auto),
            (S2Fast, S2Auto, S2Fast),
            (Accept, S2Auto, S2Fast),
            (Accept, S2Best, S2Best),
            (S2Better, Accept, S2Better),
            (Accept, Accept, Off),
            (S2Fast, Off, Off),
            (Off, S2Fast, Off),
        ] {
            assert_eq!(own.agree(theirs), agreed, "{own:?} {theirs:?}");
        }
    }

    #[test]
    fn the_round_trip_chooses_the_level() {
        use LeafCompression::*;
        let thresholds = [10, 50, 100];
        for (round_trip_ms, level) in [
            (0, S2Uncompressed),
            (10, S2Uncompressed),
            (11, S2Fast),
            (51, S2Better),
            (101, S2Best),
        ] {
            let chosen = LeafCompression::by_round_trip(round_trip_ms, &thresholds);
            assert_eq!(chosen, level, "{round_trip_ms}");
        }
        assert_eq!(LeafCompression::by_round_trip(500, &[0, 20]), S2Fast);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let mode: LeafCompression = serde_json::from_str("\"s2_auto\"").unwrap();
        assert_eq!(mode, LeafCompression::S2Auto);
        assert_eq!(LeafCompression::read(mode.name()), Some(mode));
        assert_eq!(LeafCompression::read("zip"), None);
    }
}
