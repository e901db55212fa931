//! WebSocket as it is in force for new connections.

use std::net::SocketAddr;
use std::sync::Arc;

use super::origins::Origins;
use crate::common::error::EngineError;
use crate::config::options::{Options, WebSocketOptions};
use crate::transport::tls::TlsSettings;

/// Names that the answer to an upgrade has itself.
const OWN_HEADERS: [&str; 5] = [
    "host",
    "content-length",
    "connection",
    "upgrade",
    "nats-no-masking",
];

pub struct WebSocketSettings {
    pub options: WebSocketOptions,
    /// Where it listens.
    pub address: SocketAddr,
    pub tls: Option<Arc<TlsSettings>>,
    pub origins: Origins,
    /// Further headers of the answer to an upgrade, each with its line end.
    pub header_lines: String,
}

impl WebSocketSettings {
    /// The settings of these options; none without WebSocket. `address` is where it listens.
    pub fn of(options: &Options, address: SocketAddr) -> Result<Option<Arc<Self>>, EngineError> {
        let Some(options) = &options.websocket else {
            return Ok(None);
        };
        let tls = match &options.tls {
            None => None,
            Some(tls) => Some(Arc::new(TlsSettings::new(tls)?)),
        };
        Ok(Some(Arc::new(Self {
            address,
            tls,
            origins: Origins::new(options.same_origin, &options.allowed_origins)?,
            header_lines: header_lines(&options.headers)?,
            options: options.clone(),
        })))
    }
}

fn header_lines(headers: &[(String, String)]) -> Result<String, EngineError> {
    let mut lines = String::new();
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        if OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("sec-websocket-") {
            return Err(EngineError::Options(format!(
                "websocket: the header {name:?} belongs to the upgrade itself: remove it"
            )));
        }
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let is_valid = !name.is_empty()
            && name.bytes().all(is_token)
            && !value.bytes().any(|byte| byte < b' ' && byte != b'\t');
        if !is_valid {
            return Err(EngineError::Options(format!(
                "websocket: the header {name:?} cannot be sent: it needs a name of letters, digits and '-', and a value of one line"
            )));
        }
        lines.push_str(&format!("{name}: {value}\r\n"));
    }
    Ok(lines)
}
