//! INFO, the first thing the server says. What the client says to it is in `connect_options`.

use serde::Serialize;

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
    /// Appends `INFO {json} \r\n`, with the blank that the reference server puts there.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"INFO ");
        serde_json::to_writer(&mut *out, self).expect("strings and numbers always serialise");
        out.extend_from_slice(b" \r\n");
    }
}
