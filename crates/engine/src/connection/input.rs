//! The bytes of an operation that has not arrived as a whole, kept for the next read.
//!
//! An idle connection keeps nothing. Small rests are copied to the front of the worker's read buffer; the rest of a body larger than that
//! buffer is read straight into its place, so that it is copied once.

#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    filled: usize,
}

impl Input {
    /// Bytes that are missing from an operation too large for the read buffer; empty when the read buffer will do.
    pub fn missing(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// Memory that is held.
    pub fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn has_missing(&self) -> bool {
        self.filled < self.bytes.len()
    }

    /// Counts bytes that were read into `missing`.
    pub fn add(&mut self, count: usize) {
        self.filled += count;
        debug_assert!(self.filled <= self.bytes.len());
    }

    /// Keeps an unfinished operation, or operations that wait, which need no more bytes. Room is made for all of it only if it does not fit into the read buffer.
    pub fn keep(&mut self, rest: &[u8], bytes_needed: usize, read_buffer_bytes: usize) {
        if rest.is_empty() {
            self.clear();
            return;
        }
        self.bytes.clear();
        if bytes_needed > read_buffer_bytes {
            self.bytes.reserve_exact(bytes_needed);
        }
        self.bytes.extend_from_slice(rest);
        self.filled = rest.len();
        if bytes_needed > read_buffer_bytes {
            self.bytes.resize(bytes_needed, 0);
        }
    }

    /// Moves what was kept to the front of the read buffer and says how much it was.
    pub fn move_to(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.filled;
        buffer[..count].copy_from_slice(&self.bytes[..count]);
        self.filled = 0;
        self.bytes.clear();
        count
    }

    /// Takes a large operation that is complete.
    pub fn take_operation(&mut self) -> Vec<u8> {
        self.filled = 0;
        std::mem::take(&mut self.bytes)
    }

    pub fn clear(&mut self) {
        self.filled = 0;
        self.bytes = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_comes_back_as_it_was_whatever_its_length() {
        const READ_BUFFER_BYTES: usize = 8;
        let bytes = b"0123456789";

        for length in 1..bytes.len() {
            let mut input = Input::default();
            input.keep(&bytes[..length], length, READ_BUFFER_BYTES);

            assert!(!input.has_missing(), "of {length}");
            assert_eq!(input.take_operation(), &bytes[..length]);
        }
    }
}
