//! The HTTP request that a WebSocket begins with, and its answer.
//!
//! Invariant: a request is accepted only if it is complete, nothing follows it, and its origin may connect.

use std::net::IpAddr;

use base64::prelude::{Engine as _, BASE64_STANDARD};
use ring::digest;

use super::request::LEAF_PATH;
use super::WebSocketSettings;

/// A request may be this long; cookies with a JWT in them need some room.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// Headers that are looked at.
const HEADERS_MAX: usize = 64;

/// What a key is hashed with, see RFC 6455.
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const KEY_BYTES: usize = 16;

/// The path of another protocol, which is not served.
const MQTT_PATH: &str = "/mqtt";

pub enum Upgrade {
    Incomplete,
    Accepted(Box<Accepted>),
    Refused(UpgradeRefusal),
}

pub struct Accepted {
    /// What to answer.
    pub answer: Vec<u8>,
    pub compresses: bool,
    /// The client sends no masks.
    pub unmasked: bool,
    pub cookies: Cookies,
    /// Where a proxy says that the client is.
    pub forwarded_for: Option<IpAddr>,
    /// It is another server, that connects as a leaf node.
    pub is_leaf: bool,
}

#[derive(Debug)]
pub struct UpgradeRefusal {
    /// What to answer; nothing where the client has gone on already.
    pub answer: Vec<u8>,
    pub reason: String,
}

/// Credentials that a browser sends by itself. It has no `Debug`: it may not end up in a log.
#[derive(Default, PartialEq, Eq)]
pub struct Cookies {
    pub user: String,
    pub password: String,
    pub token: String,
    pub jwt: String,
}

/// The headers of a request or an answer.
pub(super) struct HttpHeaders<'a>(pub(super) &'a [httparse::Header<'a>]);

/// Reads what a client has sent so far.
pub fn read(bytes: &[u8], settings: &WebSocketSettings) -> Upgrade {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < REQUEST_BYTES_MAX => {
            return Upgrade::Incomplete;
        }
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return refuse(431, "the request is too large");
        }
        Err(error) => return refuse(400, &format!("the request is not HTTP: {error}")),
    };
    match accept(&request, settings) {
        Err((status, reason)) => refuse(status, &reason),
        Ok(_) if length < bytes.len() => Upgrade::Refused(UpgradeRefusal {
            answer: Vec::new(),
            reason: "client sent data before handshake is complete".to_owned(),
        }),
        Ok(accepted) => Upgrade::Accepted(Box::new(accepted)),
    }
}

fn accept(
    request: &httparse::Request<'_, '_>,
    settings: &WebSocketSettings,
) -> Result<Accepted, (u16, String)> {
    let refused = |status: u16, reason: &str| Err((status, reason.to_owned()));
    let headers = HttpHeaders(request.headers);
    let path = request.path.unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if path.ends_with(MQTT_PATH) {
        return Err((404, format!("{MQTT_PATH} is not served")));
    }
    if request.method != Some("GET") {
        return refused(405, "request method must be GET");
    }
    let host = headers.value("host").unwrap_or_default();
    if host.is_empty() {
        return refused(400, "'Host' missing in request");
    }
    if !headers.has_word("upgrade", "websocket") {
        return refused(400, "invalid value for header 'Upgrade'");
    }
    if !headers.has_word("connection", "upgrade") {
        return refused(400, "invalid value for header 'Connection'");
    }
    let key = headers.value("sec-websocket-key").unwrap_or_default();
    if key.is_empty() {
        return refused(400, "key missing");
    }
    if BASE64_STANDARD
        .decode(key)
        .is_ok_and(|key| key.len() == KEY_BYTES)
    {
        // What else a key says means nothing.
    } else {
        return refused(400, "invalid websocket key");
    }
    if !headers.has_word("sec-websocket-version", "13") {
        return refused(400, "invalid version");
    }
    let origin = headers.value("origin").filter(|origin| !origin.is_empty());
    let origin = origin.or_else(|| headers.value("sec-websocket-origin"));
    let is_secure = settings.tls.is_some();
    if let Err(why) = settings.origins.check(origin, host, is_secure) {
        return Err((403, format!("origin not allowed: {why}")));
    }
    let compresses = settings.options.compress
        && headers
            .words("sec-websocket-extensions")
            .any(|extension| begins_with_word(extension, "permessage-deflate"));
    let unmasked = headers.value("nats-no-masking") == Some("true");
    Ok(Accepted {
        answer: answer(key, compresses, unmasked, &settings.header_lines),
        compresses,
        unmasked,
        cookies: Cookies::read(&headers, settings),
        forwarded_for: headers
            .value("x-forwarded-for")
            .and_then(|text| text.parse().ok()),
        is_leaf: path.ends_with(LEAF_PATH),
    })
}

/// What proves that an answer belongs to the request with this key.
pub(super) fn accept_of(key: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key.as_bytes());
    context.update(KEY_SUFFIX);
    BASE64_STANDARD.encode(context.finish())
}

fn answer(key: &str, compresses: bool, unmasked: bool, header_lines: &str) -> Vec<u8> {
    let accept = accept_of(key);
    let mut text = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n"
    );
    if compresses {
        text.push_str("Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n");
    }
    if unmasked {
        text.push_str("Nats-No-Masking: true\r\n");
    }
    text.push_str(header_lines);
    text.push_str("\r\n");
    text.into_bytes()
}

/// The refusal of a server that connects as a leaf node where none may.
pub fn refuse_leaf() -> UpgradeRefusal {
    refusal(
        404,
        "leaf nodes are not served: add a leafnodes block to the configuration",
    )
}

fn refuse(status: u16, reason: &str) -> Upgrade {
    Upgrade::Refused(refusal(status, reason))
}

fn refusal(status: u16, reason: &str) -> UpgradeRefusal {
    let name = match status {
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Bad Request",
    };
    let body = format!("{name}\n");
    let answer = format!(
        "HTTP/1.1 {status} {name}\r\nContent-Type: text/plain; charset=utf-8\r\nSec-Websocket-Version: 13\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    UpgradeRefusal {
        answer: answer.into_bytes(),
        reason: reason.to_owned(),
    }
}

impl<'a> HttpHeaders<'a> {
    fn values(&self, name: &'static str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.0
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .filter_map(|header| std::str::from_utf8(header.value).ok())
            .map(str::trim)
    }

    pub(super) fn value(&self, name: &'static str) -> Option<&'a str> {
        self.values(name).next()
    }

    /// What stands between commas.
    pub(super) fn words(&self, name: &'static str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.values(name)
            .flat_map(|value| value.split(','))
            .map(str::trim)
    }

    pub(super) fn has_word(&self, name: &'static str, word: &str) -> bool {
        self.words(name)
            .any(|found| found.eq_ignore_ascii_case(word))
    }
}

/// Whether an extension has this name, whatever its parameters.
fn begins_with_word(extension: &str, name: &str) -> bool {
    extension
        .split(';')
        .any(|part| part.trim().eq_ignore_ascii_case(name))
}

impl Cookies {
    fn read(headers: &HttpHeaders<'_>, settings: &WebSocketSettings) -> Self {
        let mut cookies = Self::default();
        let options = &settings.options;
        for pair in headers.values("cookie").flat_map(|value| value.split(';')) {
            let Some((name, value)) = pair.trim().split_once('=') else {
                continue;
            };
            let value = value
                .strip_prefix('"')
                .and_then(|value| value.strip_suffix('"'))
                .unwrap_or(value);
            for (wanted, target) in [
                (&options.jwt_cookie, &mut cookies.jwt),
                (&options.user_cookie, &mut cookies.user),
                (&options.password_cookie, &mut cookies.password),
                (&options.token_cookie, &mut cookies.token),
            ] {
                if !wanted.is_empty() && wanted == name {
                    value.clone_into(target);
                    break;
                }
            }
        }
        cookies
    }
}

#[cfg(test)]
#[path = "upgrade_tests.rs"]
mod tests;
