//! TLS as a client of another server. Certificates and keys are text: the files are Python's to read.

use serde::Deserialize;

use crate::common::secret::Secret;

/// TLS as a client of another server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteTlsOptions {
    /// Who signs the certificates of the server.
    pub ca_pem: String,
    /// What the server is shown; empty is nothing.
    pub certificate_pem: String,
    pub key_pem: Secret,
    /// Any certificate will do, and any name in it.
    pub insecure: bool,
    /// The handshake comes before the server says anything.
    pub handshake_first: bool,
    /// How long the handshake may take; 0 is the default.
    pub timeout_ms: u64,
}
