//! Messages at rest under a key.
//!
//! A stream has one random key of its own, kept under the server's key in a small file. Every segment has a key derived from the stream's and from the segment's
//! identity, and every record a nonce made of its position, so no nonce is used twice under one key: a position is written once, and a
//! segment whose batch was refused is not written to again. Changing the server's key means to wrap one small key again, not to rewrite
//! the messages. What is not hidden: how many messages there are, how long they are, when they were stored.

use crate::common::secret::Secret;
use std::io;
use std::path::Path;

use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ring::hkdf;

use crate::storage::disk::file_system::FileSystem;
use crate::storage::disk::twin_file;
use crate::storage::disk::twin_file::{TwinFile, Twins};

/// What encryption adds to every record.
pub const TAG_BYTES: usize = 16;

/// The name of the file with the stream's key.
pub const NAME: &str = "key";

const KEY_BYTES: usize = 32;

/// What a nonce is for, so that the same position never gives the same nonce for two things.
const FOR_RECORD: u32 = 0;
const FOR_FOOTER: u32 = 1;

/// The server's key.
#[derive(Clone)]
pub struct MasterKey {
    prk: hkdf::Prk,
}

impl MasterKey {
    /// The key that a text stands for; none if it is empty.
    pub fn of_secret(secret: &Secret) -> Option<Self> {
        (!secret.is_empty()).then(|| Self::new(secret.reveal().as_bytes()))
    }

    /// From the text in the configuration, whatever its length.
    pub fn new(text: &[u8]) -> Self {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"jetlake server key");
        Self {
            prk: salt.extract(text),
        }
    }

    fn wrapping_key(&self) -> LessSafeKey {
        derive(&self.prk, &[b"stream keys"])
    }
}

/// The key of one stream.
#[derive(Clone)]
pub struct StreamKey {
    prk: hkdf::Prk,
}

/// The key of one segment.
pub struct SegmentKey {
    key: LessSafeKey,
}

struct KeyLength;

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

fn derive(prk: &hkdf::Prk, info: &[&[u8]]) -> LessSafeKey {
    let mut bytes = [0; KEY_BYTES];
    prk.expand(info, KeyLength)
        .and_then(|okm| okm.fill(&mut bytes))
        .expect("32 bytes are not too many");
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).expect("32 bytes are a key"))
}

fn nonce(position: u64, purpose: u32) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[..8].copy_from_slice(&position.to_le_bytes());
    bytes[8..].copy_from_slice(&purpose.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

impl StreamKey {
    fn from_bytes(bytes: &[u8]) -> Self {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"jetlake stream key");
        Self {
            prk: salt.extract(bytes),
        }
    }

    pub fn segment(&self, identity: u64) -> SegmentKey {
        SegmentKey {
            key: derive(&self.prk, &[b"segment", &identity.to_le_bytes()]),
        }
    }
}

impl SegmentKey {
    /// Encrypts a record's body in place; returns its tag. What stands before it is authenticated too.
    pub fn seal(&self, position: u64, front: &[u8], plain: &mut [u8]) -> [u8; TAG_BYTES] {
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(position, FOR_RECORD), Aad::from(front), plain)
            .expect("a record is not too long to be encrypted");
        tag.as_ref().try_into().expect("a tag has 16 bytes")
    }

    /// Decrypts a body and its tag in place.
    pub fn open(&self, position: u64, front: &[u8], sealed: &mut [u8]) -> Option<()> {
        self.key
            .open_in_place(nonce(position, FOR_RECORD), Aad::from(front), sealed)
            .ok()
            .map(|_| ())
    }

    pub fn seal_footer(&self, position: u64, footer: &mut Vec<u8>) {
        self.key
            .seal_in_place_append_tag(nonce(position, FOR_FOOTER), Aad::empty(), footer)
            .expect("a footer is not too long to be encrypted");
    }

    pub fn open_footer(&self, position: u64, sealed: &mut Vec<u8>) -> Option<()> {
        let plain = self
            .key
            .open_in_place(nonce(position, FOR_FOOTER), Aad::empty(), sealed)
            .ok()?
            .len();
        sealed.truncate(plain);
        Some(())
    }
}

/// What was found where the key of a stream should be.
pub enum KeyFound {
    /// The stream was never encrypted.
    None,
    Key(StreamKey),
    /// As `Key`; one copy was bad and has been written again.
    Healed(StreamKey),
    /// There is one, but no server's key was given, or it is another one, or the file is damaged.
    Locked,
}

/// Reads the key of a stream.
pub fn read(
    file_system: &dyn FileSystem,
    folder: &Path,
    master: Option<&MasterKey>,
) -> io::Result<KeyFound> {
    let (twin, healed) = match twin_file::read(file_system, folder, NAME, true)? {
        Twins::Missing => return Ok(KeyFound::None),
        Twins::Good(twin) | Twins::Behind(twin) => (twin, false),
        Twins::Healed(twin) => (twin, true),
        Twins::Lost | Twins::TooNew(_) => return Ok(KeyFound::Locked),
    };
    let Some(bytes) = master.and_then(|master| unwrap(master, &twin.body)) else {
        return Ok(KeyFound::Locked);
    };
    let key = StreamKey::from_bytes(&bytes);
    Ok(if healed {
        KeyFound::Healed(key)
    } else {
        KeyFound::Key(key)
    })
}

/// Makes a key for a stream that has none.
pub fn create(
    file_system: &dyn FileSystem,
    folder: &Path,
    master: &MasterKey,
    is_synced: bool,
) -> io::Result<StreamKey> {
    let bytes = random()?;
    let twin = TwinFile {
        generation: 1,
        body: wrap(master, &bytes)?,
    };
    match is_synced {
        true => twin_file::write(file_system, folder, NAME, &twin)?,
        false => twin_file::write_unsynced(file_system, folder, NAME, &twin)?,
    }
    Ok(StreamKey::from_bytes(&bytes))
}

/// Puts the key of a stream under another server's key; false if the old one does not fit. Messages are not touched.
pub fn rotate(
    file_system: &dyn FileSystem,
    folder: &Path,
    old: &MasterKey,
    new: &MasterKey,
) -> io::Result<bool> {
    let twin = match twin_file::read(file_system, folder, NAME, true)? {
        Twins::Good(twin) | Twins::Behind(twin) | Twins::Healed(twin) => twin,
        Twins::Missing | Twins::Lost | Twins::TooNew(_) => return Ok(false),
    };
    let Some(bytes) = unwrap(old, &twin.body) else {
        return Ok(false);
    };
    let rewrapped = TwinFile {
        generation: twin.generation + 1,
        body: wrap(new, &bytes)?,
    };
    twin_file::write(file_system, folder, NAME, &rewrapped)?;
    Ok(true)
}

fn random() -> io::Result<[u8; KEY_BYTES]> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

fn wrap(master: &MasterKey, key: &[u8; KEY_BYTES]) -> io::Result<Vec<u8>> {
    // Wrapping happens many times under one key, so the nonce is random.
    let random = random()?;
    let nonce_bytes: [u8; NONCE_LEN] = random[..NONCE_LEN].try_into().expect("it is longer");
    let mut sealed = key.to_vec();
    master
        .wrapping_key()
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce_bytes),
            Aad::empty(),
            &mut sealed,
        )
        .expect("32 bytes are not too many");
    Ok([nonce_bytes.as_slice(), &sealed].concat())
}

fn unwrap(master: &MasterKey, body: &[u8]) -> Option<[u8; KEY_BYTES]> {
    let (nonce_bytes, sealed) = body.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce_bytes).ok()?;
    let mut sealed = sealed.to_vec();
    let key = master
        .wrapping_key()
        .open_in_place(nonce, Aad::empty(), &mut sealed)
        .ok()?;
    (&*key).try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::disk::simulated::SimulatedDisk;

    #[test]
    fn a_key_is_found_again_with_the_servers_key_and_with_no_other() {
        let disk = SimulatedDisk::default();
        let folder = Path::new("/s");
        disk.create_folder(folder).unwrap();
        let (one, other) = (MasterKey::new(b"one"), MasterKey::new(b"other"));
        assert!(matches!(
            read(&disk, folder, Some(&one)),
            Ok(KeyFound::None)
        ));
        let made = create(&disk, folder, &one, true).unwrap();

        let mut body = b"secret".to_vec();
        let tag = made.segment(5).seal(4096, b"front", &mut body);
        body.extend_from_slice(&tag);

        let Ok(KeyFound::Key(found)) = read(&disk, folder, Some(&one)) else {
            panic!("it is there");
        };
        let mut copy = body.clone();
        assert!(found.segment(5).open(4096, b"front", &mut copy).is_some());
        assert_eq!(&copy[..6], b"secret");
        for (identity, position, front) in
            [(6, 4096, "front"), (5, 4100, "front"), (5, 4096, "Front")]
        {
            let mut copy = body.clone();
            let opened = found
                .segment(identity)
                .open(position, front.as_bytes(), &mut copy);
            assert!(opened.is_none());
        }
        for wrong in [None, Some(&other)] {
            assert!(matches!(read(&disk, folder, wrong), Ok(KeyFound::Locked)));
        }
    }

    #[test]
    fn another_servers_key_opens_what_the_old_one_closed() {
        let disk = SimulatedDisk::default();
        let folder = Path::new("/s");
        disk.create_folder(folder).unwrap();
        let (old, new) = (MasterKey::new(b"old"), MasterKey::new(b"new"));
        create(&disk, folder, &old, true).unwrap();

        assert!(!rotate(&disk, folder, &new, &old).unwrap());
        assert!(rotate(&disk, folder, &old, &new).unwrap());

        assert!(matches!(
            read(&disk, folder, Some(&new)),
            Ok(KeyFound::Key(_))
        ));
        assert!(matches!(
            read(&disk, folder, Some(&old)),
            Ok(KeyFound::Locked)
        ));
    }
}
