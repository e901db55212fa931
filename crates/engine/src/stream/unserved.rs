//! Streams on disk that are not served yet, or cannot be: what they would take of others stays with those.
//!
//! A stream of a later version, or one whose files cannot be opened, is served again by another start, and goes on where it was.
//! Invariant: from the moment a stream is found on disk until it follows its origins itself, it counts among the followers of those on this server.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;

use super::definition;
use super::registry::RecoveredStream;
use super::replication::followers::Followers;
use super::replication::origin::Origin;
use super::replication::origins::{OriginLocation, OriginLookup};

type Kept = Vec<(Arc<Followers>, Arc<Origin>)>;

/// By account and name.
#[derive(Default)]
pub struct Unserved(Mutex<AHashMap<(String, String), Kept>>);

impl Unserved {
    /// A stream was found, whose origins others may be; `lookup` finds them.
    pub fn keep_for(&self, found: &RecoveredStream, lookup: &OriginLookup) {
        let mut kept = Kept::new();
        for origin in definition::origins(&found.definition) {
            if let OriginLocation::Account(account) = lookup.location_of(&origin) {
                let followers = lookup.followers(&account).of(&origin.name);
                kept.push((followers, Arc::new(origin)));
            }
        }
        for (followers, origin) in &kept {
            followers.keep_for_unserved(origin);
        }
        self.replace(&found.account, &found.name, kept);
    }

    /// It is served.
    pub fn forget(&self, account: &str, name: &str) {
        self.replace(account, name, Kept::new());
    }

    fn replace(&self, account: &str, name: &str, kept: Kept) {
        let key = (account.to_owned(), name.to_owned());
        let before = match kept.is_empty() {
            true => self.0.lock().remove(&key),
            false => self.0.lock().insert(key, kept),
        };
        for (followers, origin) in before.into_iter().flatten() {
            followers.forget_unserved(&origin);
        }
    }
}
