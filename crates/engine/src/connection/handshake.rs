//! The two JSON objects of the handshake: INFO, which the server says, and CONNECT, which the client says.

use serde::Serialize;
use serde_json::{Map, Value};

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

/// What a client asks for. The defaults are those of a client that never says CONNECT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    pub verbose: bool,
    pub pedantic: bool,
    pub echo: bool,
    pub headers: bool,
    pub no_responders: bool,
    pub protocol: i64,
    pub name: String,
    pub language: String,
    pub version: String,
    /// A client may not choose its account.
    pub names_account: bool,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            verbose: true,
            pedantic: true,
            echo: true,
            headers: false,
            no_responders: false,
            protocol: 0,
            name: String::new(),
            language: String::new(),
            version: String::new(),
            names_account: false,
        }
    }
}

/// The keys whose values are credentials: checked for their type here, read by the authentication in Python.
const CREDENTIALS: [&str; 7] = [
    "user",
    "pass",
    "auth_token",
    "nkey",
    "sig",
    "jwt",
    "proxy_sig",
];

impl ConnectOptions {
    /// Decodes CONNECT over what was asked for before. `None` when it is no JSON object or a value has the wrong type.
    pub fn decode(&self, json: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(json);
        let object: Option<Map<String, Value>> = serde_json::from_str(&text).ok()?;
        let mut options = self.clone();
        for (key, value) in &object.unwrap_or_default() {
            if value.is_null() {
                continue;
            }
            match key.to_ascii_lowercase().as_str() {
                "verbose" => options.verbose = value.as_bool()?,
                "pedantic" => options.pedantic = value.as_bool()?,
                "echo" => options.echo = value.as_bool()?,
                "headers" => options.headers = value.as_bool()?,
                "no_responders" => options.no_responders = value.as_bool()?,
                "tls_required" => {
                    value.as_bool()?;
                }
                "protocol" => options.protocol = value.as_i64()?,
                "name" => value.as_str()?.clone_into(&mut options.name),
                "lang" => value.as_str()?.clone_into(&mut options.language),
                "version" => value.as_str()?.clone_into(&mut options.version),
                "account" => options.names_account |= !value.as_str()?.is_empty(),
                "new_account" => options.names_account |= value.as_bool()?,
                credential if CREDENTIALS.contains(&credential) => {
                    value.as_str()?;
                }
                _ => {}
            }
        }
        Some(options)
    }
}

/// CONNECT as it may stand in a log: without its credentials.
pub fn redacted(json: &[u8]) -> String {
    let text = String::from_utf8_lossy(json);
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(&text) else {
        return "[REDACTED]".to_owned();
    };
    for (key, value) in &mut object {
        if CREDENTIALS.contains(&key.to_ascii_lowercase().as_str()) {
            *value = Value::from("[REDACTED]");
        }
    }
    Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_any_case_and_unknown_ones_are_ignored() {
        let json = br#"{"VERBOSE":false,"Echo":false,"lang":"py","x":[1]}"#;

        let options = ConnectOptions::default().decode(json).unwrap();

        assert!(!options.verbose && !options.echo && options.pedantic);
        assert_eq!(options.language, "py");
    }

    #[test]
    fn wrong_types_and_broken_json_are_refused() {
        for json in [
            &br#"{"verbose":1}"#[..],
            br#"{"protocol":"1"}"#,
            br#"{"user":5}"#,
            b"[]",
            b"{",
            b"",
            b"{} x",
        ] {
            assert_eq!(ConnectOptions::default().decode(json), None, "{json:?}");
        }
    }

    #[test]
    fn a_second_connect_keeps_what_it_does_not_name() {
        let first = ConnectOptions::default()
            .decode(br#"{"verbose":false}"#)
            .unwrap();

        assert_eq!(first.decode(b"{}"), Some(first.clone()));
        assert_eq!(first.decode(b"null"), Some(first.clone()));
    }

    #[test]
    fn a_log_line_shows_no_credential() {
        let line = redacted(br#"{"user":"derek","PASS":"s3cr3t","name":"app"}"#);

        assert!(!line.contains("s3cr3t") && !line.contains("derek") && line.contains("app"));
        assert_eq!(redacted(b"{\"pass\":\"s3cr3t\""), "[REDACTED]");
    }
}
