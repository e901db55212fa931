//! What the streams of one account take up, and how much of it they may; and the same for all accounts of a server.
//!
//! What waits to be committed counts as well, so that streams which take messages at the same time do not each use the same room. Segments that streams share are
//! counted once. Invariant: what is taken up is the sum of what each stream has said last, less what is counted more than once.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;

use super::shared_segments::SharedSegments;
use super::shares;
use super::shares::{Pool, Share};
use crate::stream::settings::Storage;

/// No limit.
const UNLIMITED: i64 = -1;

/// What all streams of a server take up.
pub struct ServerUsage {
    memory: ReservedBytes,
    storage: ReservedBytes,
    batch_bytes: Arc<Pool>,
    upload_bytes: Arc<Pool>,
    scans: Arc<Pool>,
    snapshots: Arc<Pool>,
    restores: Arc<Pool>,
}

impl Default for ServerUsage {
    fn default() -> Self {
        Self {
            memory: ReservedBytes::default(),
            storage: ReservedBytes::default(),
            batch_bytes: Pool::new(shares::BATCH_BYTES),
            upload_bytes: Pool::new(shares::UPLOAD_BYTES),
            scans: Pool::new(shares::SCANS),
            snapshots: Pool::new(shares::SNAPSHOTS),
            restores: Pool::new(shares::RESTORES),
        }
    }
}

impl ServerUsage {
    /// With limits; less than zero means none.
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

    fn of(&self, storage: Storage) -> &ReservedBytes {
        match storage {
            Storage::Memory => &self.memory,
            Storage::File => &self.storage,
        }
    }
}

pub struct AccountUsage {
    server: Arc<ServerUsage>,
    memory: ReservedBytes,
    storage: ReservedBytes,
    /// Requests for a message that found none.
    misses: AtomicU64,
    /// Segments that several of its streams have.
    shared: SharedSegments,
    pub batch_bytes: Share,
    pub upload_bytes: Share,
    pub scans: Arc<Share>,
    pub snapshots: Arc<Share>,
    pub restores: Arc<Share>,
}

struct ReservedBytes {
    /// Committed, and waiting to be so where there is a limit.
    bytes: AtomicI64,
    bytes_max: AtomicI64,
}

impl ReservedBytes {
    fn is_limited(&self) -> bool {
        self.bytes_max.load(Ordering::Relaxed) >= 0
    }
}

impl Default for ReservedBytes {
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
            memory: ReservedBytes::default(),
            storage: ReservedBytes::default(),
            misses: AtomicU64::new(0),
            shared: SharedSegments::default(),
            batch_bytes: Share::new(&server.batch_bytes),
            upload_bytes: Share::new(&server.upload_bytes),
            scans: Arc::new(Share::new(&server.scans)),
            snapshots: Arc::new(Share::new(&server.snapshots)),
            restores: Arc::new(Share::new(&server.restores)),
            server,
        }
    }

    fn of(&self, storage: Storage) -> &ReservedBytes {
        match storage {
            Storage::Memory => &self.memory,
            Storage::File => &self.storage,
        }
    }

    /// Puts limits in force; less than zero means none.
    pub fn limit(&self, memory_bytes_max: i64, storage_bytes_max: i64) {
        let limits = [
            (&self.memory, memory_bytes_max),
            (&self.storage, storage_bytes_max),
        ];
        for (taken, most) in limits {
            taken.bytes_max.store(most, Ordering::Relaxed);
        }
    }

    /// Whether this many bytes more may be taken up.
    pub fn has_room(&self, storage: Storage, bytes: u64) -> bool {
        let taken = self.of(storage);
        let most = taken.bytes_max.load(Ordering::Relaxed);
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        most < 0 || taken.bytes.load(Ordering::Relaxed).saturating_add(more) <= most
    }

    /// Whether nothing more may be taken up at all.
    pub fn is_full(&self, storage: Storage) -> bool {
        !self.has_room(storage, 1)
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
    /// What is committed, and what waits for that.
    said: AtomicI64,
    waiting: AtomicI64,
    /// Knows it among those who share segments.
    id: u64,
}

impl StreamUsage {
    pub fn new(account: Arc<AccountUsage>, storage: Storage) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self {
            account,
            storage,
            said: AtomicI64::new(0),
            waiting: AtomicI64::new(0),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub fn account(&self) -> &Arc<AccountUsage> {
        &self.account
    }

    /// Whether this many bytes more may be stored.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.account.has_room(self.storage, bytes)
    }

    /// Whether the streams of the server take up more than they may.
    pub fn is_server_full(&self) -> bool {
        let taken = self.account.server.of(self.storage);
        let most = taken.bytes_max.load(Ordering::Relaxed);
        most >= 0 && taken.bytes.load(Ordering::Relaxed) > most
    }

    /// The stream takes up so much now, and so much more when what waits is committed.
    pub fn set_used(&self, bytes: u64, waiting_bytes: u64) {
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let waiting = match self.is_limited() {
            true => signed(waiting_bytes),
            false => 0,
        };
        let before = self.said.swap(signed(bytes), Ordering::Relaxed);
        let waited = self.waiting.swap(waiting, Ordering::Relaxed);
        let difference = signed(bytes) - before + waiting - waited;
        if difference != 0 {
            self.account.change(self.storage, difference);
        }
    }

    /// So much more waits to be committed. Where nothing is limited nobody need know.
    #[inline]
    pub fn add_waiting(&self, bytes: u64) {
        if self.is_limited() {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.waiting.fetch_add(bytes, Ordering::Relaxed);
            self.account.change(self.storage, bytes);
        }
    }

    fn is_limited(&self) -> bool {
        let (account, server) = (&self.account, &self.account.server);
        account.of(self.storage).is_limited() || server.of(self.storage).is_limited()
    }

    /// Of what the stream takes up, these segments may be in files that other streams of the account have as well: each by its identity, with its bytes.
    pub fn say_shared(&self, segments: &[(u64, u64)]) {
        let difference = self.account.shared.set(self.id, segments);
        self.account.change(self.storage, -difference);
    }
}

impl Drop for StreamUsage {
    fn drop(&mut self) {
        self.set_used(0, 0);
        self.say_shared(&[]);
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
        one.set_used(60, 0);
        other.set_used(30, 0);
        file.set_used(1 << 40, 0);

        assert!(one.is_server_full() && !file.is_server_full());
        assert!(one.has_room(10) && !one.has_room(11) && file.has_room(1 << 50));
        one.set_used(50, 0);
        one.add_waiting(5);
        assert!(!one.is_server_full());
        one.add_waiting(1);
        assert!(one.is_server_full());
        one.set_used(50, 0);
        assert!(other.has_room(20));
        drop(one);
        assert!(other.has_room(70) && !other.has_room(71));
    }

    #[test]
    fn what_waits_in_one_stream_is_no_room_for_another() {
        let account = Arc::new(AccountUsage::new(Arc::default()));
        account.limit(-1, 100);
        let one = StreamUsage::new(Arc::clone(&account), Storage::File);
        let other = StreamUsage::new(Arc::clone(&account), Storage::File);

        one.add_waiting(60);

        assert!(other.has_room(40) && !other.has_room(41));
        one.set_used(60, 0);
        assert!(other.has_room(40) && !other.has_room(41));
        drop(one);
        assert!(other.has_room(100));
    }

    #[test]
    fn segments_that_streams_share_are_counted_once_and_still_when_one_of_them_goes() {
        let account = Arc::new(AccountUsage::new(Arc::default()));
        account.limit(-1, 200);
        let origin = StreamUsage::new(Arc::clone(&account), Storage::File);
        let fork = StreamUsage::new(Arc::clone(&account), Storage::File);
        origin.set_used(100, 0);
        origin.say_shared(&[(7, 60), (8, 30)]);
        fork.set_used(95, 0);
        fork.say_shared(&[(7, 60), (8, 20)]);

        // 100 of the origin and 15 of the fork's own: 60 and 20 are counted already.
        assert!(fork.has_room(85) && !fork.has_room(86));
        // The origin loses one of the segments: now it is the fork's alone.
        origin.set_used(40, 0);
        origin.say_shared(&[(8, 30)]);
        assert!(fork.has_room(85) && !fork.has_room(86));
        drop(origin);
        assert!(fork.has_room(105) && !fork.has_room(106));
        drop(fork);
        assert!(account.has_room(Storage::File, 200));
    }
}
