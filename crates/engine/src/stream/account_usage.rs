//! What the streams of one account take up, and how much of it they may; and the same for all accounts of a server.
//!
//! Invariant: what is taken up is the sum of what each stream has said last.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;

use super::settings::Storage;

/// No limit.
const UNLIMITED: i64 = -1;

/// What all streams of a server take up.
#[derive(Default)]
pub struct ServerUsage {
    memory: Taken,
    storage: Taken,
}

impl ServerUsage {
    /// With limits; less than zero is none.
    pub fn limited(memory_bytes_max: i64, storage_bytes_max: i64) -> Self {
        let usage = Self::default();
        usage
            .memory
            .bytes_max
            .store(memory_bytes_max, Ordering::Relaxed);
        usage
            .storage
            .bytes_max
            .store(storage_bytes_max, Ordering::Relaxed);
        usage
    }

    fn of(&self, storage: Storage) -> &Taken {
        match storage {
            Storage::Memory => &self.memory,
            Storage::File => &self.storage,
        }
    }
}

pub struct AccountUsage {
    server: Arc<ServerUsage>,
    memory: Taken,
    storage: Taken,
    /// Requests for a message that found none.
    misses: AtomicU64,
}

struct Taken {
    bytes: AtomicI64,
    bytes_max: AtomicI64,
}

impl Default for Taken {
    fn default() -> Self {
        Self {
            bytes: AtomicI64::new(0),
            bytes_max: AtomicI64::new(UNLIMITED),
        }
    }
}

impl AccountUsage {
    pub fn new(server: Arc<ServerUsage>) -> Self {
        Self {
            server,
            memory: Taken::default(),
            storage: Taken::default(),
            misses: AtomicU64::new(0),
        }
    }

    fn of(&self, storage: Storage) -> &Taken {
        match storage {
            Storage::Memory => &self.memory,
            Storage::File => &self.storage,
        }
    }

    /// Puts limits in force; less than zero is none.
    pub fn limit(&self, memory_bytes_max: i64, storage_bytes_max: i64) {
        let limits = [
            (&self.memory, memory_bytes_max),
            (&self.storage, storage_bytes_max),
        ];
        for (taken, most) in limits {
            taken.bytes_max.store(most, Ordering::Relaxed);
        }
    }

    /// Whether so many bytes more may be taken up.
    pub fn has_room(&self, storage: Storage, bytes: u64) -> bool {
        let taken = self.of(storage);
        let most = taken.bytes_max.load(Ordering::Relaxed);
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        most < 0 || taken.bytes.load(Ordering::Relaxed).saturating_add(more) <= most
    }

    fn change(&self, storage: Storage, difference: i64) {
        for taken in [self.of(storage), self.server.of(storage)] {
            taken.bytes.fetch_add(difference, Ordering::Relaxed);
        }
    }

    pub fn note_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}

/// What one stream takes up of its account; nothing any more when it is dropped.
pub struct StreamUsage {
    account: Arc<AccountUsage>,
    storage: Storage,
    said: AtomicI64,
}

impl StreamUsage {
    pub fn new(account: Arc<AccountUsage>, storage: Storage) -> Self {
        Self {
            account,
            storage,
            said: AtomicI64::new(0),
        }
    }

    pub fn account(&self) -> &AccountUsage {
        &self.account
    }

    /// Whether so many bytes more may be stored.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.account.has_room(self.storage, bytes)
    }

    /// Whether the streams of the server take up more than they may, with so many bytes that wait.
    pub fn is_server_full(&self, waiting_bytes: u64) -> bool {
        let taken = self.account.server.of(self.storage);
        let most = taken.bytes_max.load(Ordering::Relaxed);
        let waiting = i64::try_from(waiting_bytes).unwrap_or(i64::MAX);
        most >= 0 && taken.bytes.load(Ordering::Relaxed).saturating_add(waiting) > most
    }

    /// The stream takes up so much now.
    pub fn say(&self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let before = self.said.swap(bytes, Ordering::Relaxed);
        if bytes != before {
            self.account.change(self.storage, bytes - before);
        }
    }
}

impl Drop for StreamUsage {
    fn drop(&mut self) {
        self.say(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_share_the_room_of_their_account() {
        let server = Arc::new(ServerUsage::limited(85, -1));
        let account = Arc::new(AccountUsage::new(server));
        account.limit(100, -1);
        let one = StreamUsage::new(Arc::clone(&account), Storage::Memory);
        let other = StreamUsage::new(Arc::clone(&account), Storage::Memory);
        let file = StreamUsage::new(Arc::clone(&account), Storage::File);
        one.say(60);
        other.say(30);
        file.say(1 << 40);

        assert!(one.is_server_full(0) && !file.is_server_full(1 << 50));
        assert!(one.has_room(10) && !one.has_room(11) && file.has_room(1 << 50));
        one.say(50);
        assert!(!one.is_server_full(5) && one.is_server_full(6));
        assert!(other.has_room(20));
        drop(one);
        assert!(other.has_room(70) && !other.has_room(71));
    }
}
