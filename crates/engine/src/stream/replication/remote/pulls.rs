//! What was asked for and has not come: the flow control of a reader, which asks only for what there is room for.
//!
//! Two requests are under way at most, so that one is filled while the next is on its way. Invariant: what is under way and what waits to be stored is
//! never more than the window, in messages; and in bytes no more than the window and one message.

/// Requests at the same time.
pub const SLOTS: usize = 2;

/// Messages that one request asks for.
pub const BATCH: u64 = 512;

/// Messages that may wait to be stored, with those that are under way.
pub const WINDOW_MESSAGES: u64 = BATCH * 4;

/// Bytes that may wait to be stored before nothing more is asked for.
pub const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes that one request asks for, unless a single message may be longer.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// What a message has besides its payload, at most: subject, reply, headers.
const MESSAGE_EXTRA_BYTES: usize = 128 * 1024;

/// How long a request stays, and how often it says that it does.
pub const EXPIRES_NS: u64 = 30_000_000_000;
pub const HEARTBEAT_NS: u64 = 5_000_000_000;

#[derive(Debug, Default)]
pub struct Pulls {
    /// Of each slot: how many are still to come.
    under_way: [u64; SLOTS],
    /// The next request is for one message, of any size: a longer one than expected stands first.
    is_single: bool,
}

/// A request to be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Pull {
    pub slot: usize,
    pub batch: u64,
    /// 0 is any number.
    pub bytes_max: usize,
}

impl Pulls {
    /// The next request, if there is room for what it brings.
    pub fn next_request(
        &mut self,
        waiting: u64,
        waiting_bytes: usize,
        payload_bytes_max: usize,
    ) -> Option<Pull> {
        let slot = self.under_way.iter().position(|left| *left == 0)?;
        let taken = self.under_way.iter().sum::<u64>() + waiting;
        if taken + BATCH > WINDOW_MESSAGES || waiting_bytes > WAITING_BYTES_MAX {
            return None;
        }
        let is_single = std::mem::take(&mut self.is_single);
        let batch = if is_single { 1 } else { BATCH };
        self.under_way[slot] = batch;
        Some(Pull {
            slot,
            batch,
            bytes_max: match is_single {
                true => 0,
                false => REQUEST_BYTES.max(payload_bytes_max + MESSAGE_EXTRA_BYTES),
            },
        })
    }

    /// A message came for this slot; false if none was asked for.
    #[must_use]
    pub fn came(&mut self, slot: usize) -> bool {
        let was_asked = self.under_way[slot] > 0;
        self.under_way[slot] -= u64::from(was_asked);
        was_asked
    }

    /// Nothing more comes for it.
    pub fn ended(&mut self, slot: usize) {
        self.under_way[slot] = 0;
    }

    /// The first message is longer than a request may be.
    pub fn ask_for_single(&mut self) {
        self.is_single = true;
    }

    /// Whether something may come.
    pub fn is_under_way(&self) -> bool {
        self.under_way.iter().any(|left| *left > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_asked_for_than_there_is_room_for() {
        let mut pulls = Pulls::default();

        let first = pulls.next_request(0, 0, 1 << 20).unwrap();
        let second = pulls.next_request(0, 0, 1 << 20).unwrap();

        assert_eq!((first.slot, second.slot), (0, 1));
        assert_eq!(first.bytes_max, REQUEST_BYTES);
        assert_eq!(pulls.next_request(0, 0, 1 << 20), None);
        for _ in 0..BATCH {
            assert!(pulls.came(0));
        }
        assert!(!pulls.came(0));
        assert_eq!(
            pulls.next_request(WINDOW_MESSAGES - BATCH, 0, 1 << 20),
            None
        );
        assert_eq!(pulls.next_request(0, WAITING_BYTES_MAX + 1, 1 << 20), None);
        assert_eq!(pulls.next_request(BATCH, 0, 1 << 20).unwrap().slot, 0);
        pulls.ended(0);
        pulls.ended(1);
        assert!(!pulls.is_under_way());
    }

    #[test]
    fn a_message_that_is_too_long_is_asked_for_alone() {
        let mut pulls = Pulls::default();
        assert!(pulls.next_request(0, 0, 64 << 20).unwrap().bytes_max > 64 << 20);

        pulls.ask_for_single();

        let single = pulls.next_request(0, 0, 1).unwrap();
        assert_eq!((single.batch, single.bytes_max), (1, 0));
        pulls.ended(0);
        assert_eq!(pulls.next_request(0, 0, 1).unwrap().batch, BATCH);
    }
}
