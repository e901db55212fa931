//! SUB and UNSUB.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::{Context, Session};
use crate::routing::subject;
use crate::routing::subscription::Subscription;

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
        let options = &context.shared.options;
        if queue == Some(RESERVED_QUEUE) {
            let text = format!(
                "Permissions Violation for Subscription to {} using queue \"_sys_\"",
                subject::quoted(subject)
            );
            return self.say_error(context, &text);
        }
        if options.max_subscription_tokens > 0
            && subject::token_count(subject) > options.max_subscription_tokens
        {
            let text = format!(
                "Permissions Violation for Subscription to {}, too many tokens",
                subject::quoted(subject)
            );
            return self.say_error(context, &text);
        }
        if options.max_subscriptions > 0 && self.subscriptions.len() >= options.max_subscriptions {
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
                Arc::clone(&self.connection),
                subject,
                queue,
                sid,
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

    /// Forgets the sids of subscriptions that ended by themselves.
    pub fn forget_ended(&mut self) {
        self.subscriptions
            .retain(|_, subscription| !subscription.has_ended());
        self.count_subscriptions();
    }

    /// Ends every subscription; for a second CONNECT and for the end of the session.
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
