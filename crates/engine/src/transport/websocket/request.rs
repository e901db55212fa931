//! The HTTP request of this server as a client of another one's WebSocket port, and what is answered to it.
//!
//! Invariant: an answer is accepted only if it belongs to the request, by the key.

use base64::prelude::{Engine as _, BASE64_STANDARD};

use super::upgrade::{accept_of, HttpHeaders};

/// An answer may be this long.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024;

const HEADERS_MAX: usize = 64;

const KEY_BYTES: usize = 16;

/// What servers connect to on a WebSocket port as leaf nodes.
pub const LEAF_PATH: &str = "/leafnode";

/// What is asked of the other side.
pub struct UpgradeRequest {
    pub text: Vec<u8>,
    key: String,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum UpgradeAnswer {
    Incomplete,
    Accepted {
        /// Bytes of the answer; what follows are frames.
        length: usize,
        compresses: bool,
        unmasked: bool,
    },
    Refused(String),
}

impl UpgradeRequest {
    /// A request to `host:port`, below a path, for compression and to do without masks.
    pub fn new(address: &str, path: &str, compresses: bool, unmasked: bool) -> Self {
        let mut key = [0; KEY_BYTES];
        // A key that is known proves less; nothing else depends on it.
        let _ = getrandom::fill(&mut key);
        let key = BASE64_STANDARD.encode(key);
        let path = format!("{}{LEAF_PATH}", path.trim_end_matches('/'));
        let mut text = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        );
        if compresses {
            text.push_str("Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n");
        }
        if unmasked {
            text.push_str("Nats-No-Masking: true\r\n");
        }
        text.push_str("\r\n");
        Self {
            text: text.into_bytes(),
            key,
        }
    }

    /// Reads what has come so far.
    pub fn read_answer(&self, bytes: &[u8]) -> UpgradeAnswer {
        let refused = |reason: &str| UpgradeAnswer::Refused(reason.to_owned());
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() < ANSWER_BYTES_MAX => {
                return UpgradeAnswer::Incomplete;
            }
            Ok(httparse::Status::Partial) => return refused("the answer is too large"),
            Err(error) => return UpgradeAnswer::Refused(format!("not an answer in HTTP: {error}")),
        };
        if response.code != Some(101) {
            let (code, reason) = (response.code.unwrap_or(0), response.reason.unwrap_or(""));
            return UpgradeAnswer::Refused(format!("the upgrade is refused with {code} {reason}"));
        }
        let headers = HttpHeaders(response.headers);
        let is_upgrade = headers.has_word("upgrade", "websocket")
            && headers.has_word("connection", "upgrade")
            && headers.value("sec-websocket-accept") == Some(&accept_of(&self.key));
        if !is_upgrade {
            return refused("the answer does not belong to the request");
        }
        let extensions: Vec<&str> = headers.words("sec-websocket-extensions").collect();
        let compresses = extensions
            .iter()
            .any(|extension| extension.contains("permessage-deflate"));
        let is_stateless = |side: &str| extensions.iter().any(|one| one.contains(side));
        if compresses
            && !(is_stateless("server_no_context_takeover")
                && is_stateless("client_no_context_takeover"))
        {
            return refused("compression that remembers earlier messages is not served");
        }
        UpgradeAnswer::Accepted {
            length,
            compresses,
            unmasked: headers.value("nats-no-masking") == Some("true"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(request: &UpgradeRequest, accept: &str, further: &str) -> Vec<u8> {
        let _ = request;
        format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{further}\r\n").into_bytes()
    }

    #[test]
    fn the_answer_to_a_request_is_accepted_and_no_other() {
        let request = UpgradeRequest::new("h:80", "/nats/", true, true);
        let text = String::from_utf8(request.text.clone()).unwrap();
        assert!(text.starts_with("GET /nats/leafnode HTTP/1.1\r\nHost: h:80\r\n"));

        let further = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\nNats-No-Masking: true\r\n";
        let good = answer(&request, &accept_of(&request.key), further);
        let accepted = UpgradeAnswer::Accepted {
            length: good.len(),
            compresses: true,
            unmasked: true,
        };
        assert_eq!(request.read_answer(&good), accepted);
        assert_eq!(
            request.read_answer(&good[..good.len() - 1]),
            UpgradeAnswer::Incomplete
        );
        for bad in [
            answer(&request, "wrong", ""),
            b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(),
            b"INFO {}\r\n".to_vec(),
            answer(
                &request,
                &accept_of(&request.key),
                "Sec-WebSocket-Extensions: permessage-deflate\r\n",
            ),
        ] {
            let refused = request.read_answer(&bad);
            assert!(matches!(refused, UpgradeAnswer::Refused(_)), "{refused:?}");
        }
    }
}
