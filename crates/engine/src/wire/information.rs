//! INFO, the first thing the server says. What the client says to it is in `connect_options`.

use std::net::SocketAddr;

use serde::Serialize;

use crate::common::error::EngineError;
use crate::config::options::{Options, API_LEVEL};

/// `INFO`. Fields that do not apply are left out, as clients expect.
#[derive(Debug, Clone, Serialize)]
pub struct Information {
    pub server_id: String,
    pub server_name: String,
    pub version: String,
    pub proto: u8,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub git_commit: String,
    pub go: String,
    pub host: String,
    pub port: u16,
    pub headers: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub auth_required: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub tls_required: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub tls_verify: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub tls_available: bool,
    pub max_payload: usize,
    #[serde(skip_serializing_if = "is_false")]
    pub jetstream: bool,
    pub client_id: u64,
    pub client_ip: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub ldm: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub connect_info: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_account: String,
    #[serde(skip_serializing_if = "is_false")]
    pub acc_is_sys: bool,
    pub api_lvl: u8,
    pub xkey: String,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Information {
    /// What is the same for all clients; the rest is filled in for each.
    pub fn new(
        options: &Options,
        address: SocketAddr,
        server_id: &str,
        curve_key: &str,
    ) -> Result<Self, EngineError> {
        let (host, port) = match &options.client_advertise {
            None => (options.host.clone(), address.port()),
            Some(advertised) => split_advertised(advertised, address.port())?,
        };
        Ok(Self {
            server_name: if options.server_name.is_empty() {
                server_id.to_owned()
            } else {
                options.server_name.clone()
            },
            server_id: server_id.to_owned(),
            version: options.version.clone(),
            proto: 1,
            git_commit: options.git_commit.clone(),
            go: format!("rust jetlake-{}", env!("CARGO_PKG_VERSION")),
            host,
            port,
            headers: options.headers,
            auth_required: options.info_auth_required.unwrap_or(options.auth_required),
            tls_required: options.tls.as_ref().is_some_and(|tls| {
                // Where TLS comes first, nothing else can.
                !tls.allow_non_tls || tls.handshake_first_ms.is_some()
            }),
            tls_verify: options.tls.as_ref().is_some_and(|tls| tls.verify),
            tls_available: options.tls.as_ref().is_some_and(|tls| tls.allow_non_tls),
            max_payload: options.max_payload_bytes,
            jetstream: options.jetstream,
            client_id: 0,
            client_ip: String::new(),
            nonce: String::new(),
            domain: options.domain.clone(),
            ldm: false,
            connect_info: false,
            remote_account: String::new(),
            acc_is_sys: false,
            api_lvl: API_LEVEL,
            xkey: curve_key.to_owned(),
        })
    }

    /// Appends `INFO {json} \r\n`, with the blank that the reference server puts there.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"INFO ");
        serde_json::to_writer(&mut *out, self).expect("strings and numbers always serialise");
        out.extend_from_slice(b" \r\n");
    }
}

fn split_advertised(advertised: &str, port: u16) -> Result<(String, u16), EngineError> {
    match advertised.rsplit_once(':') {
        None => Ok((advertised.to_owned(), port)),
        Some((host, text)) => match text.parse() {
            Ok(port) => Ok((host.to_owned(), port)),
            Err(_) => Err(EngineError::Options(format!(
                "client_advertise {advertised:?} must be host or host:port"
            ))),
        },
    }
}
