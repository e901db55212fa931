//! All links of a server, and the connections that may become one.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::link::LeafLink;
use super::remote::LeafRemote;
use crate::routing::clients::connection::Connection;

#[derive(Default)]
pub struct LeafLinks {
    /// Every connection to another server, whether or not it is a link yet.
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    open: Mutex<BTreeMap<u64, Arc<LeafLink>>>,
    remotes: Mutex<Vec<Arc<LeafRemote>>>,
    /// Connections of parts of this server that read through links.
    internal: Mutex<BTreeMap<u64, Arc<Connection>>>,
}

impl LeafLinks {
    pub fn add_connection(&self, connection: &Arc<Connection>) {
        let mut connections = self.connections.lock();
        connections.insert(connection.id, Arc::clone(connection));
    }

    /// A connection to another server has ended; true if it was one.
    pub fn remove_connection(&self, id: u64) -> bool {
        self.open.lock().remove(&id);
        self.internal.lock().remove(&id);
        self.connections.lock().remove(&id).is_some()
    }

    /// A link has ended; none if that was known, or there was none.
    pub fn close(&self, id: u64) -> Option<Arc<LeafLink>> {
        self.open.lock().remove(&id)
    }

    pub fn connection(&self, id: u64) -> Option<Arc<Connection>> {
        self.connections.lock().get(&id).cloned()
    }

    pub fn add_internal(&self, connection: &Arc<Connection>) {
        let mut internal = self.internal.lock();
        internal.insert(connection.id, Arc::clone(connection));
    }

    /// The connections of parts of this server that read through links of an account.
    pub fn internal_of(&self, account: &str) -> Vec<Arc<Connection>> {
        let internal = self.internal.lock();
        let all = internal.values();
        all.filter(|connection| connection.identity.lock().account == account)
            .cloned()
            .collect()
    }

    /// Notes a link. Returns the one it replaces: a server that connects again has lost the connection it had.
    pub fn add(&self, link: &Arc<LeafLink>) -> Option<Arc<LeafLink>> {
        let account = link.connection.identity.lock().account.clone();
        let mut open = self.open.lock();
        let new = &link.traits;
        let is_replaced = |old: &&Arc<LeafLink>| {
            let traits = &old.traits;
            !new.is_solicited
                && !traits.is_solicited
                && !new.server_name.is_empty()
                && !new.remote_account.is_empty()
                && traits.server_name == new.server_name
                && traits.cluster == new.cluster
                && traits.remote_account == new.remote_account
                && old.connection.identity.lock().account == account
        };
        let old = open.values().find(is_replaced).cloned();
        open.insert(link.connection.id, Arc::clone(link));
        old
    }

    pub fn count(&self) -> usize {
        self.open.lock().len()
    }

    pub fn find(&self, id: u64) -> Option<Arc<LeafLink>> {
        self.open.lock().get(&id).cloned()
    }

    /// All links, oldest first.
    pub fn all(&self) -> Vec<Arc<LeafLink>> {
        self.open.lock().values().cloned().collect()
    }

    pub fn remotes(&self) -> Vec<Arc<LeafRemote>> {
        self.remotes.lock().clone()
    }

    /// Replaces the remotes, and returns the old ones.
    pub fn set_remotes(&self, remotes: Vec<Arc<LeafRemote>>) -> Vec<Arc<LeafRemote>> {
        std::mem::replace(&mut self.remotes.lock(), remotes)
    }
}
