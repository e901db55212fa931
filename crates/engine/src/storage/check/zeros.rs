//! Bytes that must be zero: between the copies of a header, after a record, after the last one.

use std::io;

use crate::storage::disk::file_system::File;

/// Read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// Looks at stretches of a file, cheaply if they are asked for from front to back.
pub struct Zeros<'a> {
    file: &'a dyn File,
    file_bytes: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Zeros<'a> {
    pub fn new(file: &'a dyn File, file_bytes: u64) -> Self {
        Self {
            file,
            file_bytes,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// The first byte of a stretch that is not zero. What lies beyond the end of the file counts as zero.
    pub fn first_stray(&mut self, from: u64, to: u64) -> io::Result<Option<u64>> {
        let to = to.min(self.file_bytes);
        let mut from = from;
        while from < to {
            let held_end = self.start + self.bytes.len() as u64;
            if from < self.start || from >= held_end {
                let count = (self.file_bytes - from).min(CHUNK_BYTES);
                self.bytes.resize(count as usize, 0);
                self.file.read_exact_at(&mut self.bytes, from)?;
                self.start = from;
            }
            let offset = (from - self.start) as usize;
            let end = ((to - self.start) as usize).min(self.bytes.len());
            let stretch = &self.bytes[offset..end];
            if let Some(stray) = stretch.iter().position(|byte| *byte != 0) {
                return Ok(Some(from + stray as u64));
            }
            from = self.start + end as u64;
        }
        Ok(None)
    }
}
