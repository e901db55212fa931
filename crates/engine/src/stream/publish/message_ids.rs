//! Message ids of a stream: those of its duplicate window, and that of its last message.
//!
//! What was stored before the start is read when it is first needed. Invariant: nothing with an id is stored before
//! that, so `duplicates` never misses an id within the window.

use super::duplicates::Duplicates;

pub struct MessageIds {
    duplicates: Duplicates,
    is_loaded: bool,
    /// The id of the last message; empty if it had none.
    last: Vec<u8>,
}

impl MessageIds {
    pub fn new(window_ns: i64, seed: u64) -> Self {
        Self {
            duplicates: Duplicates::new(window_ns, seed),
            is_loaded: false,
            last: Vec::new(),
        }
    }

    /// What was stored before the start has been looked through.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    pub fn seed(&self) -> u64 {
        self.duplicates.seed()
    }

    /// Enters what was read of the disk.
    pub fn load(&mut self, duplicates: Duplicates, last: Vec<u8>) {
        debug_assert!(!self.is_loaded, "ids are read once");
        self.is_loaded = true;
        self.duplicates = duplicates;
        self.last = last;
    }

    pub fn set_window(&mut self, window_ns: i64, now_ns: i64) {
        self.duplicates.set_window(window_ns, now_ns);
    }

    pub fn expire(&mut self, now_ns: i64) {
        self.duplicates.expire(now_ns);
    }

    /// The sequence of the message that had this id.
    pub fn find(&self, id: &[u8]) -> Option<u64> {
        self.duplicates.find(id)
    }

    pub fn last(&self) -> &[u8] {
        &self.last
    }

    /// A message was staged.
    pub fn add(&mut self, id: Option<&[u8]>, sequence: u64, time_ns: i64) {
        self.last.clear();
        if let Some(id) = id {
            self.last.extend_from_slice(id);
            self.duplicates.add(id, sequence, time_ns);
        }
    }

    /// Messages from here on were not stored after all; `last` is the id of the one before them.
    pub fn forget_from(&mut self, first: u64, last: Vec<u8>) {
        self.duplicates.forget_from(first);
        self.last = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_stored_is_forgotten() {
        let mut ids = MessageIds::new(i64::MAX, 1);
        ids.add(Some(b"one"), 1, 0);
        ids.add(Some(b"two"), 2, 0);

        ids.forget_from(2, b"one".to_vec());

        assert_eq!((ids.find(b"one"), ids.find(b"two")), (Some(1), None));
        assert_eq!(ids.last(), b"one");
    }

    #[test]
    fn a_message_without_an_id_is_the_last_one_too() {
        let mut ids = MessageIds::new(i64::MAX, 1);
        ids.add(Some(b"one"), 1, 0);

        ids.add(None, 2, 0);

        assert_eq!((ids.last(), ids.find(b"one")), (&b""[..], Some(1)));
    }
}
