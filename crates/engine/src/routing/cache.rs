//! Routes that were found before, so that a publish to a known subject walks no tree and takes no lock.
//!
//! One cache per worker and account, used by the worker's own thread only. A whole cache is dropped when the account's subscriptions
//! changed. Subjects that hardly ever come twice, such as those of answers, are remembered by what they begin with, where that alone decides who gets
//! them. Invariant: every route in it was found at `generation`.

use ahash::{AHashMap, RandomState};
use hashbrown::HashMap;

use super::account::Account;
use super::tree::Routes;
use crate::common::subject;

/// Subjects remembered per worker and account. Publishers to more subjects than this walk the tree now and then, which is cheap too.
const SUBJECTS_MAX: usize = 4096;

#[derive(Default)]
pub struct RouteCache {
    generation: u64,
    /// Position of each subject's routes.
    positions: AHashMap<Box<[u8]>, usize>,
    routes: Vec<Routes>,
    /// The subject of the last publish and its position: most publishers stay on one subject for a while.
    last_subject: Vec<u8>,
    last_position: Option<usize>,
    /// Positions by the first tokens of a subject and their number in all; `None` where more than those decide.
    prefixes: HashMap<Prefix, Option<usize>, RandomState>,
    /// What the subject of the last answer began with, and its position: answers go to one requester for a while.
    last_parent: Vec<u8>,
    last_parent_position: Option<usize>,
}

/// Receivers that are remembered, or were found in the tree just now.
pub enum FoundRoutes {
    At(usize),
    Walked(Routes),
}

impl FoundRoutes {
    #[inline]
    pub fn routes<'a>(&'a self, cache: &'a RouteCache) -> &'a Routes {
        match self {
            Self::At(position) => &cache.routes[*position],
            Self::Walked(routes) => routes,
        }
    }
}

/// What a subject begins with, and how many tokens it has.
#[derive(PartialEq, Eq)]
struct Prefix {
    bytes: Box<[u8]>,
    tokens: usize,
}

/// The same, borrowed.
#[derive(PartialEq, Eq, Hash)]
struct PrefixRef<'a> {
    bytes: &'a [u8],
    tokens: usize,
}

impl std::hash::Hash for Prefix {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let borrowed = PrefixRef {
            bytes: &self.bytes,
            tokens: self.tokens,
        };
        borrowed.hash(state);
    }
}

impl hashbrown::Equivalent<Prefix> for PrefixRef<'_> {
    fn equivalent(&self, key: &Prefix) -> bool {
        *self.bytes == *key.bytes && self.tokens == key.tokens
    }
}

impl RouteCache {
    /// The receivers of a subject, from the cache or the tree.
    #[inline]
    pub fn find(&mut self, account: &Account, subject: &[u8]) -> &Routes {
        if self.generation != account.generation() {
            self.clear();
        }
        let position = match self.last_position {
            Some(position) if self.last_subject == subject => position,
            _ => self.find_other(account, subject),
        };
        &self.routes[position]
    }

    fn find_other(&mut self, account: &Account, subject: &[u8]) -> usize {
        let position = match self.positions.get(subject) {
            Some(position) => *position,
            None => {
                let (routes, generation) = account.find(subject);
                if generation != self.generation || self.routes.len() >= SUBJECTS_MAX {
                    self.clear();
                    self.generation = generation;
                }
                self.routes.push(routes);
                let position = self.routes.len() - 1;
                self.positions.insert(subject.into(), position);
                position
            }
        };
        self.last_subject.clear();
        self.last_subject.extend_from_slice(subject);
        self.last_position = Some(position);
        position
    }

    /// The receivers of a subject, cached by its first tokens: at most `deciding_max` of them.
    pub fn find_by_prefix(
        &mut self,
        account: &Account,
        subject: &[u8],
        deciding_max: usize,
    ) -> FoundRoutes {
        if self.generation != account.generation() {
            self.clear();
        }
        let mut tokens = 1;
        let mut end = subject.len();
        for at in memchr::memchr_iter(b'.', subject) {
            if tokens == deciding_max {
                end = at;
            }
            tokens += 1;
        }
        let wanted = PrefixRef {
            bytes: &subject[..end],
            tokens,
        };
        match self.prefixes.get(&wanted) {
            Some(Some(position)) => return FoundRoutes::At(*position),
            Some(None) => return FoundRoutes::Walked(account.find(subject).0),
            None => {}
        }
        let (routes, generation, deciding) = account.find_deciding(subject);
        if generation != self.generation || self.prefixes.len() >= SUBJECTS_MAX {
            self.clear();
            self.generation = generation;
        }
        let key = Prefix {
            bytes: wanted.bytes.into(),
            tokens,
        };
        if deciding > deciding_max {
            self.prefixes.insert(key, None);
            return FoundRoutes::Walked(routes);
        }
        self.routes.push(routes);
        let position = self.routes.len() - 1;
        self.prefixes.insert(key, Some(position));
        FoundRoutes::At(position)
    }

    /// The receivers of a subject that is remembered without its last token.
    pub fn find_by_parent(&mut self, account: &Account, subject: &[u8]) -> FoundRoutes {
        if self.generation == account.generation() {
            if let Some(position) = self.last_parent_position {
                if is_child(subject, &self.last_parent) {
                    return FoundRoutes::At(position);
                }
            }
        }
        let tokens = subject::token_count(subject);
        let found = self.find_by_prefix(account, subject, tokens - 1);
        if let (FoundRoutes::At(position), Some(end)) = (&found, memchr::memrchr(b'.', subject)) {
            self.last_parent.clear();
            self.last_parent.extend_from_slice(&subject[..end]);
            self.last_parent_position = Some(*position);
        }
        found
    }

    /// Forgets everything if the account has changed, so that an idle worker does not keep ended subscriptions alive.
    pub fn forget_outdated(&mut self, account: &Account) {
        if self.generation != account.generation() && !self.routes.is_empty() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.positions.clear();
        self.prefixes.clear();
        self.routes.clear();
        self.last_position = None;
        self.last_parent_position = None;
    }
}

/// Whether a subject is its parent and one token more.
fn is_child(subject: &[u8], parent: &[u8]) -> bool {
    let behind = subject.strip_prefix(parent);
    let token = behind.and_then(|behind| behind.strip_prefix(b"."));
    token.is_some_and(|token| memchr::memchr(b'.', token).is_none())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::routing::subscription::{Receiver, Restrictions, Subscription};

    fn services(routes: &Routes) -> Vec<u64> {
        let service = |subscription: &Arc<Subscription>| match subscription.receiver {
            Receiver::Service(service) => Some(service),
            _ => None,
        };
        let mut services: Vec<u64> = routes.plain.iter().filter_map(service).collect();
        services.sort_unstable();
        services
    }

    #[test]
    fn an_answer_reaches_whom_a_walk_of_the_tree_finds() {
        let account = Account::new("A", 0);
        let mut cache = RouteCache::default();
        for (service, subject) in [
            "_INBOX.a.*",
            "_INBOX.b.*",
            "_INBOX.a.x.>",
            "_INBOX.a.2",
            "*",
        ]
        .into_iter()
        .enumerate()
        {
            let receiver = Receiver::Service(service as u64);
            let restrictions = Restrictions::default();
            let subject = subject.as_bytes();
            let subscription = Subscription::new(receiver, subject, None, b"1", restrictions);
            account.subscribe(Arc::new(subscription));

            for subject in [
                "_INBOX.a.1",
                "_INBOX.a.2",
                "_INBOX.a.3",
                "_INBOX.a",
                "_INBOX.a.1.2",
                "_INBOX.ab.1",
                "_INBOX.b.1",
                "_INBOX.b.2",
                "_INBOX.a.x.y",
                "one",
            ] {
                let found = cache.find_by_parent(&account, subject.as_bytes());
                let (walked, _) = account.find(subject.as_bytes());
                assert_eq!(
                    services(found.routes(&cache)),
                    services(&walked),
                    "{subject}"
                );
            }
        }
    }
}
