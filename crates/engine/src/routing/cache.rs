//! Routes that were found before, so that a publish to a known subject walks no tree and takes no lock.
//!
//! One cache per worker and account, used by the worker's own thread only. A whole cache is dropped when the account's subscriptions
//! changed. Invariant: every route in it was found at `generation`.

use ahash::AHashMap;

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

    /// Forgets everything if the account has changed, so that an idle worker does not keep ended subscriptions alive.
    pub fn forget_outdated(&mut self, account: &Account) {
        if self.generation != account.generation() && !self.routes.is_empty() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.positions.clear();
        self.routes.clear();
        self.last_position = None;
    }
}
