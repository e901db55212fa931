//! SUB and UNSUB.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::{Context, Session};
use crate::common::subject;
use crate::routing::monitoring::closed::{LastSubscriptions, SUBSCRIPTIONS_MAX};
use crate::routing::monitoring::reports::{by_number, SubscriptionReport};
use crate::routing::subscription::{Receiver, Subscription};

/// A queue group name that servers keep for themselves.
const RESERVED_QUEUE: &[u8] = b"_sys_";

impl Session {
    pub(super) fn subscribe(
        &mut self,
        subject: &[u8],
        queue: Option<&[u8]>,
        sid: &[u8],
        context: &mut Context<'_>,
    ) {
        let options = context.shared.options();
        let restrictions = match self.access.subscribe(subject, queue) {
            Some(restrictions) if queue != Some(RESERVED_QUEUE) => restrictions,
            _ => {
                let text = violation(subject, queue);
                self.log_violation("Subscription", subject, context);
                return self.say_error(context, &text);
            }
        };
        if options.max_subscription_tokens > 0
            && subject::token_count(subject) > options.max_subscription_tokens
        {
            let text = format!(
                "Permissions Violation for Subscription to {}, too many tokens",
                subject::quoted(subject)
            );
            return self.say_error(context, &text);
        }
        let subscriptions_max = self.access.subscriptions_max(options.max_subscriptions);
        if subscriptions_max > 0 && self.subscriptions.len() >= subscriptions_max {
            return self.say_error(context, "maximum subscriptions exceeded");
        }
        let taken = self
            .subscriptions
            .get(sid)
            .is_some_and(|existing| !existing.has_ended());
        if !taken {
            if !subject::is_valid_subscription(subject) {
                return self.say_error(context, "Invalid Subject");
            }
            let subscription = Arc::new(Subscription::new(
                Receiver::Connection(Arc::clone(&self.connection)),
                subject,
                queue,
                sid,
                restrictions,
            ));
            self.subscriptions
                .insert(sid.into(), Arc::clone(&subscription));
            self.count_subscriptions();
            self.account.subscribe(subscription);
        }
        self.acknowledge(context);
    }

    pub(super) fn unsubscribe(&mut self, sid: &[u8], delivered_max: Option<u64>) {
        let Some(subscription) = self.subscriptions.get(sid) else {
            return;
        };
        if delivered_max.is_some_and(|max| !subscription.limit(max)) {
            return;
        }
        self.account.unsubscribe(subscription);
        self.subscriptions.remove(sid);
        self.count_subscriptions();
    }

    /// Permissions have changed: what is no longer allowed ends, with a word to the client; the rest gets its new restrictions.
    pub(super) fn review_subscriptions(&mut self, context: &mut Context<'_>) {
        let subscriptions = std::mem::take(&mut self.subscriptions);
        for (sid, old) in subscriptions {
            let queue = old.queue.as_deref();
            match self.access.subscribe(&old.subject, queue) {
                Some(restrictions) if restrictions.is_same(&old.restrictions) => {
                    self.subscriptions.insert(sid, old);
                }
                Some(restrictions) => {
                    let renewed = Arc::new(old.renewed(restrictions));
                    if self.account.replace(&old, Arc::clone(&renewed)) {
                        self.subscriptions.insert(sid, renewed);
                    }
                }
                None => {
                    self.account.unsubscribe(&old);
                    let text = format!(
                        "{} (sid {})",
                        violation(&old.subject, queue),
                        subject::quoted(&sid)
                    );
                    self.say_error(context, &text);
                }
            }
        }
        self.count_subscriptions();
    }

    /// Forgets the sid of a subscription that ended by itself, unless another one has it by now.
    pub fn forget_ended(&mut self, sid: &[u8]) {
        let held = self.subscriptions.get(sid);
        if held.is_some_and(|subscription| subscription.has_ended()) {
            self.subscriptions.remove(sid);
            self.count_subscriptions();
        }
    }

    /// Ends every subscription at the end of the session, and notes for monitoring which they were.
    pub fn end_subscriptions(&mut self) {
        if self.subscriptions.is_empty() {
            return;
        }
        let mut ending: Vec<_> = self.subscriptions.values().collect();
        ending.sort_by(|one, other| by_number(&one.sid, &other.sid));
        *self.connection.last_subscriptions.lock() = LastSubscriptions {
            count: ending.len(),
            first: ending
                .iter()
                .take(SUBSCRIPTIONS_MAX)
                .map(|subscription| SubscriptionReport::new(&self.account.name, subscription))
                .collect(),
        };
        self.drop_subscriptions();
    }

    /// Ends every subscription.
    pub fn drop_subscriptions(&mut self) {
        for (_, subscription) in self.subscriptions.drain() {
            self.account.unsubscribe(&subscription);
        }
        self.count_subscriptions();
    }

    fn count_subscriptions(&self) {
        self.connection
            .subscription_count
            .store(self.subscriptions.len(), Ordering::Relaxed);
    }
}

/// The error for a client whose subscription is not allowed.
fn violation(subject: &[u8], queue: Option<&[u8]>) -> String {
    let queue = queue.map_or(String::new(), |queue| {
        format!(" using queue {}", subject::quoted(queue))
    });
    format!(
        "Permissions Violation for Subscription to {}{queue}",
        subject::quoted(subject)
    )
}
