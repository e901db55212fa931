//! Names the engine makes up for itself: a server id that looks like every NATS server's, a curve key, nonces.

use ring::signature::{Ed25519KeyPair, KeyPair};

use super::error::EngineError;

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a public key is for: its first letter in the text form.
#[derive(Debug, Clone, Copy)]
pub enum KeyPrefix {
    Server = 13 << 3,
    User = 20 << 3,
    Curve = 23 << 3,
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], EngineError> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| EngineError::System {
        what: "random bytes",
        cause: error.into(),
    })?;
    Ok(bytes)
}

/// A public key of 56 characters: prefix, 32 bytes, checksum.
pub fn public_key(prefix: KeyPrefix) -> Result<String, EngineError> {
    Ok(encode_key(prefix, &random::<32>()?))
}

/// What a server signs with: 32 bytes, of which its id is the public half. It has no `Debug`: it may not end up in a log.
#[derive(Clone)]
pub struct ServerSeed(pub [u8; 32]);

/// A new seed, and the id of the server that signs with it.
pub fn server_identity() -> Result<(ServerSeed, String), EngineError> {
    let seed = random::<32>()?;
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("32 bytes are a seed");
    let public = pair.public_key().as_ref().try_into();
    let id = encode_key(
        KeyPrefix::Server,
        public.expect("a public key has 32 bytes"),
    );
    Ok((ServerSeed(seed), id))
}

/// A key as text.
pub fn encode_key(prefix: KeyPrefix, key: &[u8; 32]) -> String {
    let mut raw = Vec::with_capacity(35);
    raw.push(prefix as u8);
    raw.extend_from_slice(key);
    let sum = checksum(&raw);
    raw.extend_from_slice(&sum.to_le_bytes());
    encode(&raw, 5, BASE32)
}

/// The 15 characters a client signs.
pub fn nonce() -> Result<String, EngineError> {
    Ok(encode(&random::<11>()?, 6, BASE64_URL))
}

/// Standard base64, with padding: how certificates are written inside JSON.
pub fn base64(bytes: &[u8]) -> String {
    let mut text = encode(bytes, 6, BASE64);
    while text.len() % 4 > 0 {
        text.push('=');
    }
    text
}

/// Groups of `width` bits, most significant first, each as one character of the alphabet; no padding.
fn encode(bytes: &[u8], width: u32, alphabet: &[u8]) -> String {
    let mut text = String::new();
    let mut window: u32 = 0;
    let mut bits = 0;
    let mask = (1 << width) - 1;
    for byte in bytes {
        window = (window << 8) | u32::from(*byte);
        bits += 8;
        while bits >= width {
            bits -= width;
            text.push(char::from(alphabet[((window >> bits) & mask) as usize]));
        }
    }
    if bits > 0 {
        text.push(char::from(
            alphabet[((window << (width - bits)) & mask) as usize],
        ));
    }
    text
}

/// CRC-16/XMODEM, which NKEYs end in.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut crc = 0u16;
    for byte in bytes {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 != 0 {
                (crc << 1) ^ 0x1021
            } else {
                crc << 1
            };
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(b"123456789"), 0x31c3);
    }

    #[test]
    fn keys_have_56_characters_and_begin_with_their_letter() {
        let server = public_key(KeyPrefix::Server).unwrap();
        let curve = public_key(KeyPrefix::Curve).unwrap();

        assert_eq!((server.len(), &server[..1]), (56, "N"));
        assert_eq!((curve.len(), &curve[..1]), (56, "X"));
        assert_ne!(server, public_key(KeyPrefix::Server).unwrap());
    }

    #[test]
    fn the_id_of_a_server_is_the_public_half_of_its_seed() {
        let (seed, id) = server_identity().unwrap();

        let pair = Ed25519KeyPair::from_seed_unchecked(&seed.0).unwrap();
        let public = pair.public_key().as_ref().try_into().unwrap();
        assert_eq!(id, encode_key(KeyPrefix::Server, public));
        assert_ne!(seed.0, server_identity().unwrap().0 .0);
    }

    #[test]
    fn encodings_match_known_answers() {
        assert_eq!(encode(b"foobar", 5, BASE32), "MZXW6YTBOI");
        assert_eq!(encode(&[0xfb, 0xff], 6, BASE64_URL), "-_8");
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
        assert_eq!(nonce().unwrap().len(), 15);
    }
}
