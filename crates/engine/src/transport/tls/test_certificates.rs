//! Throw-away certificates, and both ends of an encrypted connection, for tests.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::config::options::{TlsOptions, TlsVersion};

pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as text.
pub struct Certified {
    pub certificate_pem: String,
    pub key_pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, "test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub fn certify(&self, name: &str) -> Certified {
        let mut params =
            CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        Certified {
            certificate_pem: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// Options of a server with a certificate of this authority.
    pub fn options(&self) -> TlsOptions {
        let server = self.certify("server");
        TlsOptions {
            certificate_pem: server.certificate_pem,
            key_pem: server.key_pem,
            ca_pem: Some(self.pem()),
            verify: false,
            min_version: TlsVersion::Tls12,
            cipher_suites: Vec::new(),
            handshake_first_ms: None,
            allow_non_tls: false,
            timeout_ms: 2_000,
            pinned_certificates: Vec::new(),
            further_certificates: Vec::new(),
            curves: Vec::new(),
            handshakes_per_second_max: 0,
        }
    }

    /// A client that trusts this authority, with a certificate of its own if asked for.
    pub fn client(&self, certified: Option<&Certified>) -> ClientConnection {
        self.client_with(certified, rustls::DEFAULT_VERSIONS)
    }

    pub fn client_with(
        &self,
        certified: Option<&Certified>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let config = match certified {
            None => builder.with_no_client_auth(),
            Some(certified) => builder
                .with_client_auth_cert(
                    vec![
                        CertificateDer::from_pem_slice(certified.certificate_pem.as_bytes())
                            .unwrap(),
                    ],
                    PrivateKeyDer::from_pem_slice(certified.key_pem.as_bytes()).unwrap(),
                )
                .unwrap(),
        };
        ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap()
    }
}
