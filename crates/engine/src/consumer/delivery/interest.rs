//! Who listens to a subject that a consumer delivers to, looked up once and again only when subscriptions have changed.
//!
//! Invariant: `routes` were found at `generation`; a caller that uses them calls `refresh` first.

use std::sync::Arc;

use crate::routing::account::Account;
use crate::routing::subscription::Subscription;
use crate::routing::tree::Routes;

pub struct Interest {
    pub subject: Box<[u8]>,
    generation: u64,
    routes: Arc<Routes>,
}

impl Interest {
    pub fn new(account: &Account, subject: &[u8]) -> Self {
        let (routes, generation) = account.find(subject);
        Self {
            subject: subject.into(),
            generation,
            routes: Arc::new(routes),
        }
    }

    /// Looks again if subscriptions have changed.
    pub fn refresh(&mut self, account: &Account) {
        if self.generation != account.generation() {
            let (routes, generation) = account.find(&self.subject);
            self.routes = Arc::new(routes);
            self.generation = generation;
        }
    }

    pub fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        let members = self.routes.groups.iter().flat_map(|group| &group.members);
        let mut all = self.routes.plain.iter().chain(members);
        all.any(|subscription| !subscription.has_ended())
    }

    /// Whether there is a subscription to exactly this subject: in the group, or without one, outside of every group.
    pub fn is_bound(&self, group: Option<&[u8]>) -> bool {
        let binds = |subscription: &Arc<Subscription>| {
            !subscription.has_ended() && subscription.subject == self.subject
        };
        match group {
            None => self.routes.plain.iter().any(binds),
            Some(name) => {
                let mut groups = self.routes.groups.iter();
                let group = groups.find(|group| *group.name == *name);
                group.is_some_and(|group| group.members.iter().any(binds))
            }
        }
    }
}
