//! How a client says who it is: the CONNECT line, with a signature of the server's nonce where there is a key.
//!
//! A seed is base32, without padding, of two bytes that say what it is for, 32 bytes, and a checksum of two bytes. It never leaves this process.

use std::fmt;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;
use ring::signature::{Ed25519KeyPair, KeyPair};

use super::remotes::Remote;
use crate::common::identity::{checksum, encode_key, KeyPrefix};
use crate::common::secret::Secret;

const SEED_PREFIX: u8 = 18 << 3;
const SEED_BYTES: usize = 32;
const SEED_TEXT_BYTES: usize = 58;

/// The key of a user, to sign with.
pub struct UserKey {
    pair: Ed25519KeyPair,
    public: String,
}

impl UserKey {
    /// Reads a seed; none if it is empty.
    pub fn read(seed: &Secret) -> Result<Option<Self>, String> {
        if seed.is_empty() {
            return Ok(None);
        }
        let wrong = || {
            "the seed is not the valid seed of a user's NKEY: use one that begins with SU and has 58 letters".to_owned()
        };
        let raw = decode_seed(seed.reveal().trim()).ok_or_else(wrong)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&raw).map_err(|_| wrong())?;
        let key = pair.public_key().as_ref().try_into().map_err(|_| wrong())?;
        Ok(Some(Self {
            public: encode_key(KeyPrefix::User, &key),
            pair,
        }))
    }

    fn sign(&self, nonce: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.sign(nonce.as_bytes()))
    }
}

impl fmt::Debug for UserKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.public)
    }
}

fn decode_seed(text: &str) -> Option<[u8; SEED_BYTES]> {
    if text.len() != SEED_TEXT_BYTES {
        return None;
    }
    let mut raw = Vec::with_capacity(SEED_BYTES + 4);
    let (mut window, mut bits) = (0u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        window = window << 5 | u32::from(value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            raw.push((window >> bits) as u8);
        }
    }
    let (body, sum) = raw.split_at_checked(SEED_BYTES + 2)?;
    let user = KeyPrefix::User as u8;
    let is_users = body[0] == SEED_PREFIX | user >> 5 && body[1] == user << 3;
    let is_whole = sum == checksum(body).to_le_bytes();
    (is_users && is_whole).then(|| body[2..].try_into().ok())?
}

/// The line that a client begins with.
pub fn connect_line(remote: &Remote, name: &str, nonce: &str, is_secure: bool) -> Vec<u8> {
    let options = &remote.options;
    let mut connect = serde_json::json!({
        "verbose": false, "pedantic": false, "protocol": 1, "headers": true, "no_responders": true, "echo": false,
        "tls_required": is_secure, "name": name, "lang": "jetlake", "version": env!("CARGO_PKG_VERSION"),
    });
    for (key, value) in [
        ("user", options.user.as_str()),
        ("pass", options.password.reveal()),
        ("auth_token", options.token.reveal()),
        ("jwt", options.jwt.reveal()),
    ] {
        if !value.is_empty() {
            connect[key] = value.into();
        }
    }
    if let Some(key) = remote.key.as_ref().filter(|_| !nonce.is_empty()) {
        connect["sig"] = key.sign(nonce).into();
        if options.jwt.is_empty() {
            connect["nkey"] = key.public.as_str().into();
        }
    }
    format!("CONNECT {connect}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::stream::replication::remote::options::RemoteOptions;
    use crate::stream::replication::remote::remotes::Remotes;

    /// A pair that the reference library made.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn a_seed_gives_the_public_key_of_the_reference_library() {
        let key = UserKey::read(&SEED.into()).unwrap().unwrap();

        assert_eq!(key.public, PUBLIC);
        assert_eq!(format!("{key:?}"), PUBLIC);
    }

    #[test]
    fn a_seed_that_is_none_is_refused() {
        let damaged = SEED.replace("SUACS", "SUACT");
        for text in ["x", PUBLIC, &damaged, &SEED[..57], "SÜ"] {
            assert!(UserKey::read(&text.into()).is_err(), "{text}");
        }
        assert!(UserKey::read(&Secret::default()).unwrap().is_none());
    }

    #[test]
    fn the_line_has_what_was_configured_and_nothing_else() {
        let line = |options: RemoteOptions| {
            let remotes = Remotes::new(&[RemoteOptions {
                name: "x".to_owned(),
                addresses: vec!["h:1".to_owned()],
                ..options
            }])
            .unwrap();
            let remote = remotes.find("A", "$JS.x.API").unwrap();
            let line = String::from_utf8(connect_line(remote, "n", "nonce", false)).unwrap();
            let json = line.trim_end().strip_prefix("CONNECT ").unwrap();
            serde_json::from_str::<serde_json::Value>(json).unwrap()
        };

        let nobody = line(RemoteOptions::default());
        let user = line(RemoteOptions {
            user: "u".to_owned(),
            password: "p".into(),
            ..RemoteOptions::default()
        });
        let key = line(RemoteOptions {
            seed: SEED.into(),
            ..RemoteOptions::default()
        });
        let bearer = line(RemoteOptions {
            seed: SEED.into(),
            jwt: "j".into(),
            ..RemoteOptions::default()
        });

        assert_eq!(nobody.get("user"), None);
        assert_eq!(nobody.get("sig"), None);
        assert_eq!((&user["user"], &user["pass"]), (&"u".into(), &"p".into()));
        assert_eq!(key["nkey"], PUBLIC);
        assert!(key["sig"].as_str().unwrap().len() > 80);
        assert_eq!((bearer.get("nkey"), &bearer["jwt"]), (None, &"j".into()));
    }
}
