//! What the configuration says about another server, or another account of this one.

use serde::Deserialize;

use crate::common::secret::Secret;
use crate::config::remote_tls::RemoteTlsOptions;

/// Another server, by its addresses; or another account of this server, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteOptions {
    pub name: String,
    /// Of this very server; no connection is made then.
    pub account: Option<String>,
    /// `host:port`, tried in turn.
    pub addresses: Vec<String>,
    pub user: String,
    pub password: Secret,
    pub token: Secret,
    /// Of the user's key, as NKEYs are written.
    pub seed: Secret,
    pub jwt: Secret,
    pub tls: Option<RemoteTlsOptions>,
    /// The JetStream domain that is asked; empty is that of the server itself.
    pub domain: String,
    /// What its API begins with, instead of the domain's.
    pub api_prefix: String,
    /// The accounts whose streams may read from it; empty is all.
    pub allowed_accounts: Vec<String>,
}
