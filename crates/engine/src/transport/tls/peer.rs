//! What a finished handshake showed: version, cipher suite, and the client's certificates.

use ring::digest::{digest, SHA256};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use rustls::{CommonState, ProtocolVersion};
use serde::Serialize;

use super::configuration::name_of;
use crate::common::identity;

pub const KEY_DIGEST_BYTES: usize = 32;

/// SHA-256 of a public key, as DER.
pub type KeyDigest = [u8; KEY_DIGEST_BYTES];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// As people write it: `1.2`, `1.3`.
    pub version: &'static str,
    /// The IANA name of the cipher suite.
    pub cipher: String,
    /// DER in base64, the client's own first; empty where none was asked for.
    pub certificates: Vec<String>,
    #[serde(skip)]
    key_digest: Option<KeyDigest>,
}

impl Peer {
    pub(super) fn of(connection: &CommonState) -> Self {
        let certificates = connection.peer_certificates().unwrap_or_default();
        Self {
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "1.3",
                _ => "1.2",
            },
            cipher: connection
                .negotiated_cipher_suite()
                .map(|suite| name_of(suite.suite()))
                .unwrap_or_default(),
            certificates: certificates
                .iter()
                .map(|certificate| identity::base64(certificate))
                .collect(),
            key_digest: certificates.first().and_then(digest_of_key),
        }
    }

    /// Whether the client has one of these keys. An empty list asks for none.
    pub fn is_pinned(&self, pinned: &[KeyDigest]) -> bool {
        pinned.is_empty()
            || self
                .key_digest
                .is_some_and(|digest| pinned.contains(&digest))
    }

    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings always serialise")
    }
}

fn digest_of_key(certificate: &CertificateDer<'_>) -> Option<KeyDigest> {
    let key = ParsedCertificate::try_from(certificate)
        .ok()?
        .subject_public_key_info();
    digest(&SHA256, key.as_ref()).as_ref().try_into().ok()
}
