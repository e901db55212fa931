//! CONNECT: what a client asks for, and what it shows of itself.
//!
//! Read as leniently as the reference server does: keys in any case, the last of several counts, values of unknown keys may be anything.
//! Invariant: this is the only reader. Authentication gets the credentials as they were understood here, so that no two readers can
//! understand different things.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::common::subject;
use crate::transport::websocket::upgrade::Cookies;

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

/// Who a client says it is. It has no `Debug`: it may not end up in a log.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
pub struct Credentials {
    #[serde(skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(rename = "pass", skip_serializing_if = "String::is_empty")]
    password: String,
    #[serde(rename = "auth_token", skip_serializing_if = "String::is_empty")]
    token: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    nkey: String,
    #[serde(rename = "sig", skip_serializing_if = "String::is_empty")]
    signature: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    jwt: String,
}

impl Credentials {
    /// The JSON object that authentication reads: with it, what else the client has said about itself.
    pub fn to_json(&self, options: &ConnectOptions) -> Vec<u8> {
        let introduction = Introduction {
            credentials: self,
            name: &options.name,
            language: &options.language,
            version: &options.version,
            protocol: options.protocol,
        };
        serde_json::to_vec(&introduction).expect("strings and numbers always serialise")
    }

    /// Fills in what the client did not say itself.
    pub fn add_cookies(&mut self, cookies: &Cookies) {
        for (own, cookie) in [
            (&mut self.user, &cookies.user),
            (&mut self.password, &cookies.password),
            (&mut self.token, &cookies.token),
            (&mut self.jwt, &cookies.jwt),
        ] {
            if own.is_empty() {
                own.clone_from(cookie);
            }
        }
    }

    /// How a log may name the client: ` - User "ada"`; nothing where it says nothing.
    pub fn label(&self) -> String {
        let (kind, name) = if !self.nkey.is_empty() {
            ("Nkey", self.nkey.as_str())
        } else if !self.user.is_empty() {
            ("User", self.user.as_str())
        } else if !self.token.is_empty() {
            ("Token", REDACTED)
        } else {
            return String::new();
        };
        format!(" - {kind} {}", subject::quoted(name.as_bytes()))
    }
}

/// Credentials with the rest of what a CONNECT says about a client.
#[derive(Serialize)]
struct Introduction<'a> {
    #[serde(flatten)]
    credentials: &'a Credentials,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(rename = "lang", skip_serializing_if = "str::is_empty")]
    language: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    protocol: i64,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// What stands in a log for a credential.
const REDACTED: &str = "[REDACTED]";

/// The keys whose values are credentials.
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
    /// Decodes CONNECT over what was asked for before. `None` if it is not a JSON object or a value has the wrong type.
    pub fn decode(&self, json: &[u8]) -> Option<(Self, Credentials)> {
        let text = String::from_utf8_lossy(json);
        let text = without_lone_surrogates(&text);
        let mut reading = Reading {
            options: self.clone(),
            credentials: Credentials::default(),
        };
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        reading.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some((reading.options, reading.credentials))
    }
}

/// What was read so far. `null` instead of an object, or of a value, changes nothing.
struct Reading {
    options: ConnectOptions,
    credentials: Credentials,
}

impl<'de> DeserializeSeed<'de> for &mut Reading {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reading {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.read(&key.to_ascii_lowercase(), &mut map)?;
        }
        Ok(())
    }
}

impl Reading {
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let Self {
            options,
            credentials,
        } = self;
        match key {
            "verbose" => set(map, &mut options.verbose),
            "pedantic" => set(map, &mut options.pedantic),
            "echo" => set(map, &mut options.echo),
            "headers" => set(map, &mut options.headers),
            "no_responders" => set(map, &mut options.no_responders),
            "tls_required" => set(map, &mut false),
            "protocol" => set(map, &mut options.protocol),
            "name" => set(map, &mut options.name),
            "lang" => set(map, &mut options.language),
            "version" => set(map, &mut options.version),
            "account" => {
                let mut account = String::new();
                set(map, &mut account)?;
                options.names_account |= !account.is_empty();
                Ok(())
            }
            "new_account" => {
                let mut wanted = false;
                set(map, &mut wanted)?;
                options.names_account |= wanted;
                Ok(())
            }
            "user" => set(map, &mut credentials.user),
            "pass" => set(map, &mut credentials.password),
            "auth_token" => set(map, &mut credentials.token),
            "nkey" => set(map, &mut credentials.nkey),
            "sig" => set(map, &mut credentials.signature),
            "jwt" => set(map, &mut credentials.jwt),
            "proxy_sig" => set(map, &mut String::new()),
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

fn set<'de, A, T>(map: &mut A, target: &mut T) -> Result<(), A::Error>
where
    A: MapAccess<'de>,
    T: Deserialize<'de>,
{
    if let Some(value) = map.next_value::<Option<T>>()? {
        *target = value;
    }
    Ok(())
}

/// Halves of a character that stand alone are not text; they become U+FFFD, as everywhere outside of Rust.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut lone = Vec::new();
    let mut position = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[position..]) {
        let escape = position + found;
        position = match surrogate(bytes, escape) {
            Some(0xd800..=0xdbff)
                if matches!(surrogate(bytes, escape + 6), Some(0xdc00..=0xdfff)) =>
            {
                escape + 12
            }
            Some(_) => {
                lone.push(escape);
                escape + 6
            }
            // Some other escape, of two characters or more: none of its other characters is a backslash that begins one.
            None => (escape + 2).min(bytes.len()),
        };
    }
    if lone.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut mended = bytes.to_vec();
    for escape in lone {
        mended[escape..escape + 6].copy_from_slice(b"\\ufffd");
    }
    Cow::Owned(String::from_utf8(mended).expect("ASCII was replaced by ASCII"))
}

/// The half of a character that is written here as `\uXXXX`, if that is what stands here.
fn surrogate(bytes: &[u8], position: usize) -> Option<u32> {
    let escape = bytes.get(position..position + 6)?;
    let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let code = u32::from_str_radix(digits, 16).ok()?;
    (0xd800..=0xdfff).contains(&code).then_some(code)
}

/// CONNECT as it may stand in a log: without its credentials.
pub fn redacted(json: &[u8]) -> String {
    let text = String::from_utf8_lossy(json);
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(&text) else {
        return REDACTED.to_owned();
    };
    for (key, value) in &mut object {
        if CREDENTIALS.contains(&key.to_ascii_lowercase().as_str()) {
            *value = Value::from(REDACTED);
        }
    }
    Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(json: &[u8]) -> Option<ConnectOptions> {
        ConnectOptions::default()
            .decode(json)
            .map(|(options, _)| options)
    }

    #[test]
    fn keys_are_read_in_any_case_and_unknown_ones_are_ignored() {
        let json = br#"{"VERBOSE":false,"Echo":false,"lang":"py","x":[1]}"#;

        let options = decoded(json).unwrap();

        assert!(!options.verbose && !options.echo && options.pedantic);
        assert_eq!(options.language, "py");
    }

    #[test]
    fn the_last_of_several_counts_whatever_its_case() {
        assert!(
            !decoded(br#"{"verbose":true,"VERBOSE":false}"#)
                .unwrap()
                .verbose
        );
        assert!(
            decoded(br#"{"VERBOSE":false,"verbose":true}"#)
                .unwrap()
                .verbose
        );
        assert!(
            !decoded(br#"{"verbose":false,"Verbose":null}"#)
                .unwrap()
                .verbose
        );
    }

    #[test]
    fn wrong_types_and_broken_json_are_refused() {
        for json in [
            &br#"{"verbose":1}"#[..],
            br#"{"protocol":"1"}"#,
            br#"{"protocol":1.0}"#,
            br#"{"protocol":1e999}"#,
            br#"{"user":5}"#,
            br#"{"x":01}"#,
            br#"{"x":"\ud8"}"#,
            b"[]",
            b"{",
            b"",
            b"{} x",
        ] {
            assert!(decoded(json).is_none(), "{json:?}");
        }
    }

    #[test]
    fn values_of_unknown_keys_may_be_anything() {
        let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(2_000), "]".repeat(2_000));
        for json in [&br#"{"x":1e999}"#[..], br#"{"\ud800":-1}"#, deep.as_bytes()] {
            assert_eq!(decoded(json), Some(ConnectOptions::default()));
        }
    }

    #[test]
    fn halves_of_characters_are_replaced_and_pairs_are_kept() {
        for (json, name) in [
            (r#"{"name":"\ud800"}"#, "\u{fffd}"),
            (r#"{"name":"\uDC00\ud800x"}"#, "\u{fffd}\u{fffd}x"),
            (r#"{"name":"\ud83d\ude00"}"#, "\u{1f600}"),
            (r#"{"name":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}"),
            (r#"{"name":"\\ud800"}"#, "\\ud800"),
            (r#"{"name":"\u0041"}"#, "A"),
        ] {
            assert_eq!(decoded(json.as_bytes()).unwrap().name, name, "{json}");
        }
    }

    #[test]
    fn a_second_connect_keeps_what_it_does_not_name() {
        let first = decoded(br#"{"verbose":false}"#).unwrap();

        for json in [&b"{}"[..], b"null"] {
            let (second, credentials) = first.decode(json).unwrap();
            assert_eq!(second, first);
            assert_eq!(credentials.to_json(&ConnectOptions::default()), b"{}");
        }
    }

    #[test]
    fn credentials_are_handed_on_as_they_were_understood() {
        let json = br#"{"user":"x","USER":"ada","Pass":"s3cr3t","auth_token":null,"name":"app"}"#;

        let (_, credentials) = ConnectOptions::default().decode(json).unwrap();

        assert_eq!(
            credentials.to_json(&ConnectOptions::default()),
            br#"{"user":"ada","pass":"s3cr3t"}"#
        );
        assert_eq!(credentials.label(), r#" - User "ada""#);
    }

    #[test]
    fn a_log_line_shows_no_credential() {
        let line = redacted(br#"{"user":"derek","PASS":"s3cr3t","name":"app"}"#);

        assert!(!line.contains("s3cr3t") && !line.contains("derek") && line.contains("app"));
        assert_eq!(redacted(b"{\"pass\":\"s3cr3t\""), REDACTED);
    }
}
