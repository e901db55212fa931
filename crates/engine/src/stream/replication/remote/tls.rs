//! From options to rustls as a client: whom to trust, and what to show. No error ever shows a key.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::options::RemoteTlsOptions;

pub fn client_config(options: &RemoteTlsOptions) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(&options.ca_pem, "ca_file")? {
        roots
            .add(certificate)
            .map_err(|error| format!("tls ca_file: {error}"))?;
    }
    if roots.is_empty() {
        return Err("tls ca_file has no certificate: name the file of the authority that signed the server's".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("tls: {error}"))?
        .with_root_certificates(roots);
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
