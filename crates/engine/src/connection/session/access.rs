//! What one client may do: its permissions and the limits of its user and account.
//!
//! The one place that is asked before a publish goes anywhere and before a subscription is made.

use std::sync::Arc;

use ahash::AHashMap;

use crate::common::permissions::{Permissions, SubscribeVerdict};
use crate::routing::clients::mailbox::Admission;
use crate::routing::responses::Responses;
use crate::routing::subscription::Restrictions;

/// Publish verdicts cached per client; when there are more subjects, the cache is cleared.
const VERDICTS_MAX: usize = 256;

#[derive(Default)]
pub struct ClientAccess {
    restricted: Option<Box<Restricted>>,
    payload_bytes_max: Option<usize>,
    subscriptions_max: Option<usize>,
}

struct Restricted {
    permissions: Arc<Permissions>,
    responses: Option<Arc<Responses>>,
    /// Whether the lists allow a publish to this subject.
    verdicts: AHashMap<Box<[u8]>, bool>,
}

impl ClientAccess {
    pub fn new(admission: &Admission) -> Self {
        let restricted = admission.permissions.as_ref().map(|lists| {
            let permissions = Permissions::new(lists);
            Box::new(Restricted {
                responses: permissions
                    .responses()
                    .map(|limits| Arc::new(Responses::new(limits))),
                permissions: Arc::new(permissions),
                verdicts: AHashMap::new(),
            })
        });
        Self {
            restricted,
            payload_bytes_max: admission.max_payload_bytes,
            subscriptions_max: admission.max_subscriptions,
        }
    }

    /// Puts in force what a client may do that is in already. Permissions that have not changed keep what they know: the answers that it owes.
    pub fn renew(&mut self, admission: &Admission) {
        let mut renewed = Self::new(admission);
        if let (Some(own), Some(other)) = (&self.restricted, &renewed.restricted) {
            if own.permissions == other.permissions {
                renewed.restricted = self.restricted.take();
            }
        }
        *self = renewed;
    }

    /// The lists themselves, for what the server is asked to do; `None` allows everything.
    #[inline]
    pub fn permissions(&self) -> Option<&Arc<Permissions>> {
        self.restricted
            .as_ref()
            .map(|restricted| &restricted.permissions)
    }

    #[inline]
    pub fn allows_publish(&mut self, subject: &[u8], now_ms: u64) -> bool {
        match &mut self.restricted {
            None => true,
            Some(restricted) => restricted.allows_publish(subject, now_ms),
        }
    }

    /// What a subscription may see, or `None` when it may not be.
    pub fn subscribe(&self, subject: &[u8], queue: Option<&[u8]>) -> Option<Restrictions> {
        let Some(restricted) = &self.restricted else {
            return Some(Restrictions::default());
        };
        let kept_back = match restricted.permissions.subscribe(subject, queue) {
            SubscribeVerdict::Allowed => Vec::new(),
            SubscribeVerdict::Filtered(kept_back) => kept_back,
            SubscribeVerdict::Denied => return None,
        };
        Some(Restrictions {
            kept_back,
            responses: restricted.responses.clone(),
        })
    }

    pub fn payload_bytes_max(&self, of_server: usize) -> usize {
        self.payload_bytes_max
            .map_or(of_server, |own| own.min(of_server))
    }

    /// 0 is unlimited.
    pub fn subscriptions_max(&self, of_server: usize) -> usize {
        match self.subscriptions_max {
            None => of_server,
            Some(own) if of_server == 0 => own,
            Some(own) => own.min(of_server),
        }
    }
}

impl Restricted {
    fn allows_publish(&mut self, subject: &[u8], now_ms: u64) -> bool {
        let allowed = match self.verdicts.get(subject) {
            Some(verdict) => *verdict,
            None => {
                let verdict = self.permissions.allows_publish(subject);
                if self.verdicts.len() >= VERDICTS_MAX {
                    self.verdicts.clear();
                }
                self.verdicts.insert(subject.into(), verdict);
                verdict
            }
        };
        allowed
            || self
                .responses
                .as_ref()
                .is_some_and(|responses| responses.use_grant(subject, now_ms))
    }
}
