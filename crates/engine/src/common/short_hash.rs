//! Short hashes of texts, the same as nats-server makes: they are part of names that both must agree on.

const HASH_LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Eight letters and digits that stand for a text.
pub fn hash8(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let letters = digest.as_ref()[..8].iter();
    letters
        .map(|byte| HASH_LETTERS[*byte as usize % HASH_LETTERS.len()] as char)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_hashes_of_nats_server() {
        assert_eq!(hash8("A"), "NUmM6cRx");
        assert_eq!(hash8("$JS.hub.API"), "bTMUkJQk");
    }
}
