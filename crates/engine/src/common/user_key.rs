//! The key of a user: a seed, and signatures of nonces with it.
//!
//! A seed is base32, without padding, of two bytes that say what it is for, 32 bytes, and a checksum of two bytes. It never leaves this process.

use std::fmt;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;
use ring::signature::{Ed25519KeyPair, KeyPair};

use super::identity::{checksum, encode_key, KeyPrefix};
use super::secret::Secret;

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

    /// The public half, as NKEYs are written.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// The signature of a nonce, as CONNECT carries it.
    pub fn sign(&self, nonce: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
