//! From options to rustls as a client: whom to trust, and what to show. No error ever shows a key.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::config::remote_tls::RemoteTlsOptions;

pub fn client_config(options: &RemoteTlsOptions) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("tls: {error}"))?;
    let builder = if options.insecure {
        let verifier = Arc::new(AnyServer { provider });
        builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
    } else {
        builder.with_root_certificates(authorities(&options.ca_pem)?)
    };
    let config = if options.certificate_pem.is_empty() {
        builder.with_no_client_auth()
    } else {
        let chain = read_certificates(&options.certificate_pem, "cert_file")?;
        let key = PrivateKeyDer::from_pem_slice(options.key_pem.reveal().as_bytes())
            .map_err(|_| "tls key_file has no private key in PEM".to_owned())?;
        builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| format!("tls cert_file and key_file: {error}"))?
    };
    Ok(Arc::new(config))
}

/// The name that a server's certificate must have: the host without the brackets of an IPv6 address.
pub fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
        .map_err(|error| error.to_string())
}

fn authorities(ca_pem: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(ca_pem, "ca_file")? {
        roots
            .add(certificate)
            .map_err(|error| format!("tls ca_file: {error}"))?;
    }
    if roots.is_empty() {
        return Err("tls ca_file has no certificate: name the file of the authority that signed the server's".to_owned());
    }
    Ok(roots)
}

/// Takes any certificate, as `insecure` asks for: the connection is encrypted, and with whom is not known.
#[derive(Debug)]
struct AnyServer {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn read_certificates(text: &str, name: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(text.as_bytes())
        .map(|certificate| {
            certificate.map_err(|_| format!("tls {name} is not in PEM: convert it with openssl"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_refused_by_its_name() {
        let empty = client_config(&RemoteTlsOptions::default()).unwrap_err();
        let broken = client_config(&RemoteTlsOptions {
            ca_pem: "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n".to_owned(),
            ..RemoteTlsOptions::default()
        })
        .unwrap_err();

        assert!(empty.contains("ca_file has no certificate"), "{empty}");
        assert!(broken.contains("ca_file is not in PEM"), "{broken}");
    }
}
