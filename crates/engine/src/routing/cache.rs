//! Routes that were found before, so that a publish to a known subject walks no tree and takes no lock.
//!
//! One cache per worker and account, used by the worker's own thread only. A whole cache is dropped when the account's subscriptions
//! changed. Subjects that hardly ever come twice, such as those of answers, are remembered by what they begin with, where that alone decides who gets
//! them. Invariant: every route in it was found at `generation`.

use ahash::{AHashMap, RandomState};
use hashbrown::HashMap;

use super::account::Account;
use super::tree::Routes;

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
}

/// Receivers that are remembered, or were found in the tree just now.
pub enum Found {
    At(usize),
    Walked(Routes),
}

impl Found {
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

    /// The receivers of a subject that is remembered by its first tokens, so many at most.
    pub fn find_by_prefix(
        &mut self,
        account: &Account,
        subject: &[u8],
        deciding_max: usize,
    ) -> Found {
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
            Some(Some(position)) => return Found::At(*position),
            Some(None) => return Found::Walked(account.find(subject).0),
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
            return Found::Walked(routes);
        }
        self.routes.push(routes);
        let position = self.routes.len() - 1;
        self.prefixes.insert(key, Some(position));
        Found::At(position)
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
    }
}
