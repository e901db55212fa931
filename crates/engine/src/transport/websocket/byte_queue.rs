//! Bytes that wait to be taken, the first ones first.
//!
//! Taking some does not move the others: what is taken in many small pieces is copied once. Invariant: one that is empty holds no memory.

#[derive(Debug, Default)]
pub struct ByteQueue {
    bytes: Vec<u8>,
    taken: usize,
}

impl ByteQueue {
    pub fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that are held.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Puts bytes before those that wait.
    pub fn put_before(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let taken = std::mem::take(&mut self.taken);
            self.bytes.splice(..taken, bytes.iter().copied());
        }
    }

    /// Where more is put behind those that wait.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub fn rest_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.taken..]
    }

    /// Moves bytes to the front of `target`, as many as there are and fit, and says how many.
    pub fn take(&mut self, target: &mut [u8]) -> usize {
        let count = self.len().min(target.len());
        target[..count].copy_from_slice(&self.bytes[self.taken..][..count]);
        self.skip(count);
        count
    }

    /// Drops the first bytes.
    pub fn skip(&mut self, count: usize) {
        debug_assert!(count <= self.len());
        self.taken += count;
        if self.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_their_order_and_an_empty_queue_holds_nothing() {
        let mut queue = ByteQueue::default();
        let mut target = [0; 4];
        queue.put(b"cdefg");
        queue.put_before(b"ab");
        assert_eq!((queue.take(&mut target), &target), (4, b"abcd"));
        queue.put_before(b"xy");
        queue.bytes_mut().push(b'h');

        assert_eq!(queue.rest_mut(), b"xyefgh");
        queue.skip(5);
        assert_eq!((queue.take(&mut target), target[0]), (1, b'h'));
        assert!(queue.is_empty() && queue.held_bytes() == 0);
        assert_eq!(queue.take(&mut target), 0);
    }
}
