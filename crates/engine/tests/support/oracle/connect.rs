//! CONNECT: which ones are understood, what they ask for, and which are refused.

use serde_json::Value;

use super::{Next, Options, Oracle, ADMITTED_USER};

/// What this reader of JSON refuses and Go's does not.
const LENIENT: [&str; 4] = [
    "number out of range",
    "lone leading surrogate",
    "unexpected end of hex escape",
    "recursion limit exceeded",
];

impl Oracle<'_> {
    pub(super) fn connect(&mut self, arguments: &[u8]) -> Next {
        let text = String::from_utf8_lossy(arguments);
        let value = match serde_json::from_str::<Value>(&text) {
            Ok(value) => value,
            Err(error) if LENIENT.iter().any(|text| error.to_string().contains(text)) => {
                return Next::Unsure
            }
            Err(_) => return Next::Close,
        };
        let Value::Object(members) = value else {
            return if value.is_null() {
                Next::Unsure
            } else {
                Next::Close
            };
        };
        let member = |name: &str| {
            let found = members
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name));
            found
                .map(|(_, value)| value.clone())
                .filter(|value| !value.is_null())
        };
        let texts = [
            "name",
            "lang",
            "version",
            "user",
            "pass",
            "auth_token",
            "nkey",
            "sig",
            "jwt",
            "proxy_sig",
            "account",
        ];
        let switches = [
            "verbose",
            "pedantic",
            "echo",
            "headers",
            "no_responders",
            "tls_required",
            "new_account",
        ];
        let wrong = texts
            .iter()
            .any(|name| member(name).is_some_and(|value| !value.is_string()))
            || switches
                .iter()
                .any(|name| member(name).is_some_and(|value| !value.is_boolean()))
            || member("protocol").is_some_and(|value| !value.is_i64());
        if wrong {
            return Next::Close;
        }
        let needed = [
            "verbose",
            "pedantic",
            "headers",
            "no_responders",
            "protocol",
        ];
        if self.connected && needed.iter().any(|name| member(name).is_none()) {
            // What a second CONNECT leaves out may stay as the first one set it.
            return Next::Unsure;
        }
        let switch = |name, default| member(name).map_or(default, |value: Value| value == true);
        let filled = |name| member(name).is_some_and(|value| value != "");
        if self.connected {
            self.subscriptions.clear();
            self.perhaps_ended.clear();
        }
        self.options = Options {
            verbose: switch("verbose", true),
            pedantic: switch("pedantic", true),
            headers: switch("headers", false),
            protocol: member("protocol")
                .and_then(|value| value.as_i64())
                .unwrap_or(0),
        };
        let refused =
            self.rules.auth_required && member("user") != Some(Value::from(ADMITTED_USER));
        if refused || filled("account") || switch("new_account", false) {
            return self.refuse("Authorization Violation");
        }
        if !(0..=1).contains(&self.options.protocol) {
            return self.refuse("invalid client protocol");
        }
        if switch("no_responders", false) && !self.options.headers {
            return self.refuse("no responders requires headers support");
        }
        self.connected = true;
        self.acknowledge();
        Next::Go
    }
}
