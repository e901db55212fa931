//! Origins behind a link to another server.
//!
//! They are read as those of any other server, by a connection of the stream's account to this server itself: requests and messages take their way through the
//! links as those of every client do.

use std::io;
use std::sync::{Arc, Weak};

use super::remote::remotes::ConnectInternally;
use crate::routing::shared::Shared;

/// How to connect as a client of an account; none if this server has no links.
pub fn connector(shared: &Weak<Shared>, account: &str) -> Option<Arc<ConnectInternally>> {
    shared.upgrade()?.options().leaf.as_ref()?;
    let (shared, account) = (Weak::clone(shared), account.to_owned());
    Some(Arc::new(move || {
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        let shared = shared.upgrade().ok_or_else(gone)?;
        shared.connect_internally(&account)
    }))
}
