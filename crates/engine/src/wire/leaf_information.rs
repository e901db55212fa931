//! What two servers tell each other before they are linked: INFO and CONNECT of the leaf protocol.

use serde::{Deserialize, Serialize};

use crate::common::permissions::RuleLists;

/// The version of the protocol between servers.
pub const LEAF_PROTOCOL: u8 = 3;

/// From this version on a server goes on with the trace of a message that it is sent.
pub const TRACING_PROTOCOL: i64 = 3;

/// `INFO` of a port for leaf nodes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeafInformation {
    pub server_id: String,
    pub server_name: String,
    pub version: String,
    pub proto: i64,
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
    pub max_payload: usize,
    #[serde(skip_serializing_if = "is_false")]
    pub jetstream: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub client_id: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compression: String,
    /// What the one that connected may subscribe to, and then publish to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import: Option<LeafRuleLists>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<LeafRuleLists>,
    #[serde(skip_serializing_if = "is_false")]
    pub connect_info: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_account: String,
    #[serde(skip_serializing_if = "is_false")]
    pub acc_is_sys: bool,
    pub api_lvl: u8,
    #[serde(skip_serializing_if = "is_false")]
    pub info_on_connect: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub ldm: bool,
    /// Where else it can be reached. A port for clients does not say.
    pub leafnode_urls: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ws_connect_urls: Option<Vec<String>>,
}

impl LeafInformation {
    /// Reads what follows `INFO `.
    pub fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// Appends `INFO {json} \r\n`.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_line(out, b"INFO ", self);
    }

    /// What log lines and monitoring call the server.
    pub fn name(&self) -> &str {
        match self.server_name.as_str() {
            "" => &self.server_id,
            name => name,
        }
    }
}

/// `CONNECT` of a server to a port for leaf nodes, without what it says to prove who it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeafConnect {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nkey: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub jwt: String,
    #[serde(rename = "sig", skip_serializing_if = "String::is_empty")]
    pub signature: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    #[serde(rename = "pass", skip_serializing_if = "String::is_empty")]
    pub password: String,
    #[serde(rename = "auth_token", skip_serializing_if = "String::is_empty")]
    pub token: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "is_false")]
    pub is_hub: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    #[serde(skip_serializing_if = "is_false")]
    pub headers: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub jetstream: bool,
    #[serde(rename = "deny_pub", skip_serializing_if = "Option::is_none")]
    pub denied_publishes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "is_false")]
    pub isolate: bool,
    #[serde(rename = "compress_mode", skip_serializing_if = "String::is_empty")]
    pub compression: String,
    /// A server of another kind, at the wrong port.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_account: String,
    pub protocol: i64,
}

impl LeafConnect {
    /// Reads what follows `CONNECT `.
    pub fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// Appends `CONNECT {json}\r\n`.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_line(out, b"CONNECT ", self);
    }
}

/// Subjects as INFO lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeafRuleLists {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
}

impl LeafRuleLists {
    /// The lists as INFO shows them; nothing if they say nothing.
    pub fn of(rules: &RuleLists) -> Option<Self> {
        let is_silent = rules.allow.is_none() && rules.deny.is_empty();
        (!is_silent).then(|| Self {
            allow: rules.allow.clone(),
            deny: (!rules.deny.is_empty()).then(|| rules.deny.clone()),
        })
    }

    pub fn to_rules(&self) -> RuleLists {
        RuleLists {
            allow: self.allow.clone(),
            deny: self.deny.clone().unwrap_or_default(),
        }
    }
}

fn write_line(out: &mut Vec<u8>, name: &[u8], object: &impl Serialize) {
    out.extend_from_slice(name);
    serde_json::to_writer(&mut *out, object).expect("strings and numbers always serialise");
    out.extend_from_slice(b" \r\n");
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_left_out_of_connect() {
        let mut line = Vec::new();
        let connect = LeafConnect {
            name: "edge".to_owned(),
            headers: true,
            protocol: 3,
            ..LeafConnect::default()
        };

        connect.write(&mut line);

        let text = String::from_utf8(line).unwrap();
        assert_eq!(
            text,
            "CONNECT {\"name\":\"edge\",\"headers\":true,\"protocol\":3} \r\n"
        );
    }

    #[test]
    fn information_of_another_server_is_read_whatever_else_it_says() {
        let json = br#"{"server_id":"N1","cluster":"c","leafnode_urls":["h:1"],"import":{"deny":["a"]},"unknown":[1]}"#;

        let information = LeafInformation::read(json).unwrap();

        assert_eq!(information.name(), "N1");
        let import = information.import.unwrap().to_rules();
        assert_eq!((import.allow, import.deny), (None, vec!["a".to_owned()]));
        assert!(LeafInformation::read(br#"{"server_id":1}"#).is_none());
    }
}
