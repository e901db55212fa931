//! From options to a configuration of rustls: certificates, keys, versions, cipher suites.
//!
//! Invariant: `TlsSettings` that exist can be used for a handshake; everything that can be wrong with the options is found when they are
//! made. No error ever shows a key.

use std::sync::Arc;

use rustls::crypto::{ring as provider, CryptoProvider, SupportedKxGroup};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
};

use super::certificates::{read_certificates, refused, Certificates};
use super::clients::Clients;
use super::peer::{KeyDigest, KEY_DIGEST_BYTES};
use super::throttle::Throttle;
use crate::common::error::EngineError;
use crate::config::options::{Options, TlsOptions, TlsVersion};

/// TLS as it is in force for new connections.
pub struct TlsSettings {
    pub server_config: Arc<ServerConfig>,
    pub timeout_ms: u64,
    pub handshake_first_ms: Option<u64>,
    pub allow_non_tls: bool,
    /// The keys of the only clients let in; empty lets all in.
    pub pinned: Vec<KeyDigest>,
    pub throttle: Throttle,
}

impl TlsSettings {
    pub fn new(options: &TlsOptions) -> Result<Self, EngineError> {
        if options.timeout_ms == 0 {
            return Err(refused("timeout must be longer than 0"));
        }
        let pinned = options
            .pinned_certificates
            .iter()
            .map(|text| {
                read_digest(text).ok_or_else(|| {
                    refused(format!(
                        "pinned_certs: {text:?} is not a valid SHA-256 of a public key: use its 64 hexadecimal digits"
                    ))
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            server_config: server_config(options)?,
            timeout_ms: options.timeout_ms,
            handshake_first_ms: options.handshake_first_ms,
            // If TLS comes first, nothing in the clear could inform a client of its choice.
            allow_non_tls: options.allow_non_tls && options.handshake_first_ms.is_none(),
            pinned,
            throttle: Throttle::new(options.handshakes_per_second_max),
        })
    }
}

/// The settings of these options; none without TLS.
pub fn settings(options: &Options) -> Result<Option<Arc<TlsSettings>>, EngineError> {
    match &options.tls {
        None => Ok(None),
        Some(tls) => TlsSettings::new(tls).map(|settings| Some(Arc::new(settings))),
    }
}

/// What rustls needs for the server's side of a handshake.
pub fn server_config(options: &TlsOptions) -> Result<Arc<ServerConfig>, EngineError> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: select_cipher_suites(&options.cipher_suites)?,
        kx_groups: select_curves(&options.curves)?,
        ..provider::default_provider()
    });
    let certificates = Certificates::read(options, &provider)?;
    let versions: &[&SupportedProtocolVersion] = match options.min_version {
        TlsVersion::Tls12 => &[&TLS13, &TLS12],
        TlsVersion::Tls13 => &[&TLS13],
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| refused(format!("cipher_suites and min_version: {error}")))?;
    let builder = if options.verify {
        let roots = Arc::new(read_authorities(options.ca_pem.as_deref())?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| refused(format!("ca_file: {error}")))?;
        builder.with_client_cert_verifier(Arc::new(Clients::new(verifier)))
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificates));
    // The fastest first, as the reference server does, whatever a client would like best.
    config.ignore_client_order = true;
    // No resumption: connections last, and one that comes back has its certificate looked at again.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Arc::new(config))
}

fn read_authorities(text: Option<&str>) -> Result<RootCertStore, EngineError> {
    let text = text.ok_or_else(|| {
        refused("verify needs ca_file: the certificates of the authorities that sign clients' certificates")
    })?;
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(text, "ca_file")? {
        roots
            .add(certificate)
            .map_err(|error| refused(format!("ca_file: {error}")))?;
    }
    Ok(roots)
}

fn read_digest(text: &str) -> Option<KeyDigest> {
    if text.len() != KEY_DIGEST_BYTES * 2 || !text.is_ascii() {
        return None;
    }
    let mut digest = [0; KEY_DIGEST_BYTES];
    for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        let high = char::from(digits[0]).to_digit(16)?;
        let low = char::from(digits[1]).to_digit(16)?;
        *byte = (high * 16 + low) as u8;
    }
    Some(digest)
}

/// The suites of that list, in our order. TLS 1.3 keeps all of its own where the list names none of them: the reference server cannot
/// restrict those, and lists written for it name those of TLS 1.2 only.
fn select_cipher_suites(names: &[String]) -> Result<Vec<SupportedCipherSuite>, EngineError> {
    let mut wanted = Vec::new();
    for name in names {
        wanted.push(cipher_suite_of(name).ok_or_else(|| {
            refused(format!(
                "cipher_suites: {name:?} is unknown or not safe; there are {}",
                preferred()
                    .iter()
                    .map(|suite| name_of(suite.suite()))
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
        })?);
    }
    let names_tls13 = wanted.iter().any(|suite| suite.tls13().is_some());
    Ok(preferred()
        .into_iter()
        .filter(|suite| {
            wanted.is_empty() || wanted.contains(suite) || (suite.tls13().is_some() && !names_tls13)
        })
        .collect())
}

/// The curves of that list, in its order.
fn select_curves(names: &[String]) -> Result<Vec<&'static dyn SupportedKxGroup>, EngineError> {
    if names.is_empty() {
        return Ok(provider::ALL_KX_GROUPS.to_vec());
    }
    names
        .iter()
        .map(|name| match name.as_str() {
            "X25519" => Ok(provider::kx_group::X25519),
            "CurveP256" => Ok(provider::kx_group::SECP256R1),
            "CurveP384" => Ok(provider::kx_group::SECP384R1),
            _ => Err(refused(format!(
                "curve_preferences: {name:?} is not on offer; there are X25519, CurveP256, CurveP384"
            ))),
        })
        .collect()
}

/// All suites, the fastest first. Without instructions for AES, ChaCha20 is the faster one.
fn preferred() -> Vec<SupportedCipherSuite> {
    use provider::cipher_suite::*;
    let mut suites = vec![
        TLS13_AES_128_GCM_SHA256,
        TLS13_AES_256_GCM_SHA384,
        TLS13_CHACHA20_POLY1305_SHA256,
        TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    if !aes_is_fast() {
        suites.sort_by_key(|suite| !name_of(suite.suite()).contains("CHACHA20"));
    }
    suites
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn aes_is_fast() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn aes_is_fast() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn aes_is_fast() -> bool {
    false
}

fn cipher_suite_of(name: &str) -> Option<SupportedCipherSuite> {
    preferred().into_iter().find(|suite| {
        let known = name_of(suite.suite());
        // Go has an older name for some, without the hash at the end.
        name.eq_ignore_ascii_case(&known)
            || known
                .strip_suffix("_POLY1305_SHA256")
                .and_then(|start| name.strip_prefix(start))
                == Some("_POLY1305")
    })
}

/// The IANA name of a suite; rustls writes those of TLS 1.3 a little differently.
pub fn name_of(suite: CipherSuite) -> String {
    let name = suite.as_str().unwrap_or("unknown");
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;
