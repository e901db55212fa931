//! Where a stream finds its origins: among the other streams of its account, in another account, or on another server.
//!
//! Accounts do not see each other, so an origin outside of the stream's own account is found only if the configuration names it as a remote, or imports lead there.

use std::sync::Arc;

use super::followers::FollowersByName;
use super::origin::Origin;
use super::remote::remotes::{ConnectInternally, Remote, Remotes};
use crate::stream::remembered::FileLocation;
use crate::stream::stream::Stream;

/// Finds a stream by its account and its name.
pub type FindStream = dyn Fn(&str, &str) -> Option<Arc<Stream>> + Send + Sync;

/// Those who follow the streams of an account.
pub type FindFollowers = dyn Fn(&str) -> Arc<FollowersByName> + Send + Sync;

/// Makes a connection to this server as a client of an account, to read through its links; none if there can be no link.
pub type FindLinked = dyn Fn(&str) -> Option<Arc<ConnectInternally>> + Send + Sync;

/// The account that imports of another account lead to.
pub type FindImported = dyn Fn(&str, &Origin) -> Option<String> + Send + Sync;

/// Where an origin is.
pub enum OriginLocation {
    /// On this server, in this account.
    Account(String),
    Server(Arc<Remote>),
    /// Its API is not that of any remote, and no import leads there.
    Nowhere,
}

/// What a stream needs to know of the others.
#[derive(Clone)]
pub struct OriginLookup {
    /// The stream's own.
    pub account: String,
    pub find_stream: Arc<FindStream>,
    pub find_followers: Arc<FindFollowers>,
    pub find_imported: Arc<FindImported>,
    pub find_linked: Arc<FindLinked>,
    pub remotes: Arc<Remotes>,
    /// Where to write down how far the sources are; nowhere for a stream in memory.
    pub place: Option<FileLocation>,
}

impl OriginLookup {
    /// Another stream of the account.
    pub fn find(&self, name: &str) -> Option<Arc<Stream>> {
        (self.find_stream)(&self.account, name)
    }

    pub fn find_in(&self, account: &str, name: &str) -> Option<Arc<Stream>> {
        (self.find_stream)(account, name)
    }

    /// Those who follow the streams of an account.
    pub fn followers(&self, account: &str) -> Arc<FollowersByName> {
        (self.find_followers)(account)
    }

    pub fn location_of(&self, origin: &Origin) -> OriginLocation {
        let Some(external) = &origin.external else {
            return OriginLocation::Account(self.account.clone());
        };
        match self.remotes.find(&self.account, &external.api) {
            None => match (self.find_imported)(&self.account, origin) {
                Some(account) => OriginLocation::Account(account),
                None => self.behind_link(&external.api),
            },
            Some(remote) => match &remote.options.account {
                Some(account) => OriginLocation::Account(account.clone()),
                None => OriginLocation::Server(Arc::clone(remote)),
            },
        }
    }

    /// An API that no remote and no import has may be behind a link; the first request shows whether it is.
    fn behind_link(&self, api: &str) -> OriginLocation {
        match (self.find_linked)(&self.account) {
            None => OriginLocation::Nowhere,
            Some(connect) => {
                let api = api.trim_end_matches('.');
                let remote = self.remotes.linked(&self.account, api, connect);
                OriginLocation::Server(Arc::new(remote))
            }
        }
    }
}
