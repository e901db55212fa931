//! All other servers that the configuration names, and which of them an origin means.
//!
//! An origin names the API it is asked through, as it would on a nats-server with leaf nodes: `$JS.<name>.API`, `$JS.<domain>.API`, or the remote's own
//! prefix. Invariant: no two remotes answer to the same text.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use rustls::ClientConfig;

use super::options::RemoteOptions;
use crate::common::error::EngineError;
use crate::common::user_key::UserKey;
use crate::transport::tls::client;

/// Origins elsewhere that are read at the same time: each has a thread and a connection.
pub const READERS_MAX: usize = 256;

/// One remote, ready to be connected to.
pub struct Remote {
    pub options: RemoteOptions,
    pub tls: Option<Arc<ClientConfig>>,
    pub key: Option<UserKey>,
    readers: Arc<AtomicUsize>,
    /// Reaches it through links of an account, by a connection to this server itself.
    pub linked: Option<Arc<ConnectInternally>>,
}

/// Makes a connection to this server itself, as a client of an account.
pub type ConnectInternally = dyn Fn() -> io::Result<TcpStream> + Send + Sync;

impl Remote {
    fn new(options: RemoteOptions, readers: Arc<AtomicUsize>) -> Result<Self, EngineError> {
        let refused =
            |reason| EngineError::Options(format!("the remote {:?}: {reason}", options.name));
        if options.account.is_none() && options.addresses.is_empty() {
            return Err(refused("it has no address".to_owned()));
        }
        Ok(Self {
            tls: options
                .tls
                .as_ref()
                .map(client::client_config)
                .transpose()
                .map_err(refused)?,
            key: UserKey::read(&options.seed).map_err(refused)?,
            readers,
            options,
            linked: None,
        })
    }

    /// What its API begins with, for those who ask it.
    pub fn api(&self) -> String {
        let options = &self.options;
        match (options.api_prefix.is_empty(), options.domain.is_empty()) {
            (false, _) => options.api_prefix.clone(),
            (true, false) => api_of(&options.domain),
            (true, true) => "$JS.API".to_owned(),
        }
    }

    fn answers_to(&self, api: &str) -> bool {
        let options = &self.options;
        api == api_of(&options.name)
            || !options.domain.is_empty() && api == api_of(&options.domain)
            || !options.api_prefix.is_empty() && api == options.api_prefix
    }

    fn is_for(&self, account: &str) -> bool {
        let allowed = &self.options.allowed_accounts;
        allowed.is_empty() || allowed.iter().any(|name| name == account)
    }

    /// One more reader, unless there are as many as may be.
    pub fn count_reader(&self) -> Option<Counted> {
        let counted = Counted(Arc::clone(&self.readers));
        let before = self.readers.fetch_add(1, Ordering::AcqRel);
        (before < READERS_MAX).then_some(counted)
    }
}

/// A reader, as long as it is there.
pub struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// All of them.
#[derive(Default)]
pub struct Remotes {
    remotes: Vec<Arc<Remote>>,
    readers: Arc<AtomicUsize>,
}

impl Remotes {
    /// Refuses a list, as JSON, that `new` would refuse.
    pub fn check(remotes: &[u8]) -> Result<(), EngineError> {
        let options: Vec<RemoteOptions> = serde_json::from_slice(remotes)
            .map_err(|error| EngineError::Options(error.to_string()))?;
        Self::new(&options).map(|_| ())
    }

    pub fn new(options: &[RemoteOptions]) -> Result<Self, EngineError> {
        let readers = Arc::<AtomicUsize>::default();
        let made = options
            .iter()
            .map(|options| Remote::new(options.clone(), Arc::clone(&readers)).map(Arc::new));
        Ok(Self {
            remotes: made.collect::<Result<_, _>>()?,
            readers,
        })
    }

    /// What answers to an API behind a link of an account.
    pub fn linked(&self, account: &str, api: &str, connect: Arc<ConnectInternally>) -> Remote {
        Remote {
            options: RemoteOptions {
                name: format!("link of {account}"),
                // Its connections need none, but each is known by one.
                addresses: vec![String::new()],
                api_prefix: api.to_owned(),
                ..RemoteOptions::default()
            },
            tls: None,
            key: None,
            readers: Arc::clone(&self.readers),
            linked: Some(connect),
        }
    }

    /// The one that answers to an API, if streams of this account may read from it.
    pub fn find(&self, account: &str, api: &str) -> Option<&Arc<Remote>> {
        let mut remotes = self.remotes.iter();
        remotes.find(|remote| remote.answers_to(api) && remote.is_for(account))
    }
}

fn api_of(name: &str) -> String {
    format!("$JS.{name}.API")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str) -> RemoteOptions {
        RemoteOptions {
            name: name.to_owned(),
            addresses: vec!["127.0.0.1:4222".to_owned()],
            ..RemoteOptions::default()
        }
    }

    #[test]
    fn a_remote_answers_to_its_name_its_domain_and_its_prefix() {
        let remotes = Remotes::new(&[
            options("plain"),
            RemoteOptions {
                domain: "hub".to_owned(),
                ..options("east")
            },
            RemoteOptions {
                api_prefix: "js.west".to_owned(),
                allowed_accounts: vec!["A".to_owned()],
                ..options("west")
            },
        ])
        .unwrap();
        let asked = |account: &str, api: &str| remotes.find(account, api).map(|found| found.api());

        assert_eq!(asked("A", "$JS.plain.API"), Some("$JS.API".to_owned()));
        assert_eq!(asked("A", "$JS.east.API"), Some("$JS.hub.API".to_owned()));
        assert_eq!(asked("A", "$JS.hub.API"), Some("$JS.hub.API".to_owned()));
        assert_eq!(asked("A", "js.west"), Some("js.west".to_owned()));
        assert_eq!(asked("A", "$JS.west.API"), Some("js.west".to_owned()));
        assert_eq!(asked("B", "js.west"), None);
        assert_eq!(asked("A", "$JS.API"), None);
        assert_eq!(asked("A", ""), None);
    }

    #[test]
    fn a_remote_without_address_or_with_a_wrong_seed_is_refused_without_showing_it() {
        let nowhere = Remotes::new(&[RemoteOptions {
            name: "x".to_owned(),
            ..RemoteOptions::default()
        }]);
        let wrong = Remotes::new(&[RemoteOptions {
            seed: "hidden".into(),
            ..options("x")
        }]);

        assert!(nowhere.is_err());
        let reason = wrong.err().unwrap().to_string();
        assert!(!reason.contains("hidden"), "{reason}");
    }

    #[test]
    fn there_are_only_so_many_readers() {
        let remotes = Remotes::new(&[options("x")]).unwrap();
        let remote = remotes.find("A", "$JS.x.API").unwrap();

        let mut counted: Vec<_> = (0..READERS_MAX)
            .map(|_| remote.count_reader().unwrap())
            .collect();

        assert!(remote.count_reader().is_none());
        counted.pop();
        assert!(remote.count_reader().is_some());
    }
}
