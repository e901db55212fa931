//! What a stream's folder knows about itself besides its segments, kept twice.
//!
//! It is what makes the absence of something noticeable: a missing last segment, a tail cut off, a number given away before a crash. It is
//! written rarely: when a segment begins, when the reserve of numbers runs low, when the store is closed and used again.

use std::io;
use std::path::Path;

use super::bytes::{ByteReader, Put};
use crate::storage::disk::file_system::FileSystem;
use crate::storage::disk::twin_file;
use crate::storage::disk::twin_file::{TwinFile, Twins};

pub const NAME: &str = "anchor";

/// Sequences given away ahead of their use, so that none is given twice after a crash that hides how far it went.
pub const RESERVE_STEP: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The identity of the stream, in every segment of it.
    pub stream: u64,
    /// The first sequence the stream ever gave.
    pub origin_sequence: u64,
    /// No sequence from here on was ever given.
    pub reserved_sequence: u64,
    /// No segment has a higher number.
    pub last_number: u64,
    /// Where the store ended when it was closed in good order; `None` while it is in use.
    pub closed: Option<Closed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    pub last_sequence: u64,
    pub number: u64,
    pub end: u64,
}

/// An anchor with the generation of its file.
#[derive(Debug, Clone, Copy)]
pub struct StoredAnchor {
    pub anchor: Anchor,
    pub generation: u64,
}

impl StoredAnchor {
    /// Writes the first one of a store that is made durable as a whole later.
    pub fn write_unsynced(
        &mut self,
        file_system: &dyn FileSystem,
        folder: &Path,
    ) -> io::Result<()> {
        self.generation += 1;
        let twin = TwinFile {
            generation: self.generation,
            body: self.anchor.encode(),
        };
        twin_file::write_unsynced(file_system, folder, NAME, &twin)
    }

    pub fn write(&mut self, file_system: &dyn FileSystem, folder: &Path) -> io::Result<()> {
        let twin = TwinFile {
            generation: self.generation + 1,
            body: self.anchor.encode(),
        };
        twin_file::write(file_system, folder, NAME, &twin)?;
        self.generation += 1;
        Ok(())
    }
}

/// What was found where an anchor should be.
#[derive(Debug)]
pub enum FoundAnchor {
    Missing,
    Good(StoredAnchor),
    Healed(StoredAnchor),
    TooNew(u32),
    Lost,
}

pub fn read(file_system: &dyn FileSystem, folder: &Path, heal: bool) -> io::Result<FoundAnchor> {
    let (twin, healed) = match twin_file::read(file_system, folder, NAME, heal)? {
        Twins::Missing => return Ok(FoundAnchor::Missing),
        Twins::Lost => return Ok(FoundAnchor::Lost),
        Twins::TooNew(version) => return Ok(FoundAnchor::TooNew(version)),
        Twins::Good(twin) | Twins::Behind(twin) => (twin, false),
        Twins::Healed(twin) => (twin, true),
    };
    let Some(anchor) = Anchor::decode(&twin.body) else {
        return Ok(FoundAnchor::Lost);
    };
    let kept = StoredAnchor {
        anchor,
        generation: twin.generation,
    };
    Ok(if healed {
        FoundAnchor::Healed(kept)
    } else {
        FoundAnchor::Good(kept)
    })
}

impl Anchor {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.put_u64(self.stream);
        bytes.put_u64(self.origin_sequence);
        bytes.put_u64(self.reserved_sequence);
        bytes.put_u64(self.last_number);
        if let Some(closed) = self.closed {
            bytes.put_u64(closed.last_sequence);
            bytes.put_u64(closed.number);
            bytes.put_u64(closed.end);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader::new(bytes);
        let mut anchor = Self {
            stream: reader.u64()?,
            origin_sequence: reader.u64()?,
            reserved_sequence: reader.u64()?,
            last_number: reader.u64()?,
            closed: None,
        };
        if !reader.is_empty() {
            anchor.closed = Some(Closed {
                last_sequence: reader.u64()?,
                number: reader.u64()?,
                end: reader.u64()?,
            });
        }
        reader.is_empty().then_some(anchor)
    }
}
