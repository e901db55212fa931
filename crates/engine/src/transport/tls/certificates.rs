//! The server's certificates, and which of them a client gets.
//!
//! As in Go: the first that has the name the client asks for and that it can check, else the first of all. No error ever shows a key.

use std::fmt;
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::common::error::EngineError;
use crate::config::options::TlsOptions;

/// Never empty.
pub struct Certificates {
    keys: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    pub fn read(options: &TlsOptions, provider: &CryptoProvider) -> Result<Self, EngineError> {
        let first = certified(&options.certificate_pem, &options.key_pem, provider)?;
        let mut keys = vec![Arc::new(first)];
        for further in &options.further_certificates {
            let key = certified(&further.certificate_pem, &further.key_pem, provider)?;
            keys.push(Arc::new(key));
        }
        Ok(Self { keys })
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok());
        let fits = |key: &&Arc<CertifiedKey>| {
            key.key.choose_scheme(hello.signature_schemes()).is_some()
                && name.as_ref().is_none_or(|name| has_name(key, name))
        };
        let chosen = match self.keys.as_slice() {
            [only] => Some(only),
            several => several.iter().find(fits).or(several.first()),
        };
        chosen.cloned()
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} certificates", self.keys.len())
    }
}

fn has_name(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    key.end_entity_cert()
        .and_then(ParsedCertificate::try_from)
        .is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
}

fn certified(
    certificate_pem: &str,
    key_pem: &str,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, EngineError> {
    let certificates = read_certificates(certificate_pem, "cert_file")?;
    CertifiedKey::from_der(certificates, read_key(key_pem)?, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => refused(
            "key_file is not the key of the first certificate in cert_file: give the key that certificate was made for",
        ),
        error => refused(format!("cert_file and key_file: {error}")),
    })
}

pub(super) fn refused(reason: impl Into<String>) -> EngineError {
    EngineError::Options(format!("tls: {}", reason.into()))
}

pub(super) fn read_certificates(
    text: &str,
    file: &str,
) -> Result<Vec<CertificateDer<'static>>, EngineError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| refused(format!("{file} cannot be read as PEM: {}", fault(&error))))?;
    if certificates.is_empty() {
        return Err(refused(format!(
            "{file} holds no certificate: it must be PEM, with a line `-----BEGIN CERTIFICATE-----`"
        )));
    }
    Ok(certificates)
}

fn read_key(text: &str) -> Result<PrivateKeyDer<'static>, EngineError> {
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
        pem::Error::NoItemsFound => refused(
            "key_file holds no private key: it must be PEM, and not encrypted (`openssl pkey` writes such a key)",
        ),
        error => refused(format!("key_file cannot be read as PEM: {}", fault(&error))),
    })
}

/// What is wrong with a PEM, without any of its text: a line of a key must not get into a log.
fn fault(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no end",
        pem::Error::IllegalSectionStart { .. } => "a section begins wrongly",
        pem::Error::Base64Decode(_) => "a section is not base64",
        _ => "it is damaged",
    }
}
