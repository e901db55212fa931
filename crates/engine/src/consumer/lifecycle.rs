//! How a consumer begins and ends: what it subscribes to and watches, and the last answer to waiting requests.
//!
//! Invariant: after its end it listens to nothing, and nothing waits, though it may be told to begin only then.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::consumer::Consumer;
use super::delivery::outbound::Outbound;
use super::delivery::status;
use super::pull::waiting::PullWait;
use super::settings::AckPolicy;
use crate::common::short_hash::hash8;
use crate::routing::sink::{Sink, Watcher};
use crate::routing::subscription::{Receiver, Restrictions, Subscription};

impl Consumer {
    /// Takes acknowledgements from now on, and delivers; nothing happens if it has ended.
    pub fn begin(self: &Arc<Self>) {
        let mut subscriptions = self.subscriptions.lock();
        // Its end takes the same lock after this is set: it finds all subscriptions, or there are none.
        if self.core.lock().is_closed() {
            return;
        }
        for subject in self.own_subjects() {
            let sink: Arc<dyn Sink> = Arc::clone(self) as Arc<dyn Sink>;
            let subscription = Arc::new(Subscription::new(
                Receiver::Sink(sink),
                subject.as_bytes(),
                None,
                b"",
                Restrictions::default(),
            ));
            self.context.account.subscribe(Arc::clone(&subscription));
            subscriptions.push(subscription);
        }
        self.watch();
        drop(subscriptions);
        self.has_begun.store(true, Ordering::Release);
        self.look_for_dead_letters();
        self.schedule();
    }

    /// What it subscribes to: acknowledgements, and answers to flow control.
    fn own_subjects(&self) -> Vec<String> {
        let settings = self.settings();
        let (stream, name) = (&self.context.stream, &self.name);
        let account = hash8(&self.context.account.name);
        let domain = self.context.domain.as_deref().unwrap_or("_");
        let mut subjects = Vec::new();
        if matches!(settings.ack_policy, AckPolicy::Explicit | AckPolicy::All) {
            subjects.push(format!("$JS.ACK.{stream}.{name}.*.*.*.*.*"));
            subjects.push(format!(
                "$JS.ACK.{domain}.{account}.{stream}.{name}.*.*.*.*.>"
            ));
            if settings.dialect.is_some() {
                subjects.push(format!("$JS.ACK.{stream}.{name}.*.*.*"));
                subjects.push(format!("$JS.A.{stream}.{name}.*.*.*"));
            }
        }
        if settings.flow_control {
            subjects.push(format!("$JS.FC.{stream}.{name}.*"));
            subjects.push(format!("$JS.FC.{domain}.{account}.{stream}.{name}.*"));
        }
        subjects
    }

    /// Watches subscriptions to its deliver subject.
    pub(super) fn watch(&self) {
        let account = &self.context.account;
        if let (Some(subject), Some(own)) = (&self.settings().deliver_subject, self.own.upgrade()) {
            account.watch(subject.as_bytes(), own);
        }
    }

    /// Stops watching subscriptions to this subject.
    pub(super) fn unwatch(&self, subject: Option<&str>) {
        if let (Some(subject), Some(own)) = (subject, self.own.upgrade()) {
            let own: Arc<dyn Watcher> = own;
            self.context.account.unwatch(subject.as_bytes(), &own);
        }
    }

    /// Delivers nothing any more; waiting requests are ended as `header` says.
    fn stop(&self, header: impl FnMut(&PullWait, &mut Vec<u8>)) {
        let account = &self.context.account;
        self.core.lock().close();
        let mut subscriptions = self.subscriptions.lock();
        for subscription in subscriptions.drain(..) {
            account.unsubscribe(&subscription);
        }
        self.unwatch(self.settings().deliver_subject.as_deref());
        drop(subscriptions);
        let mut out = Outbound::default();
        self.core.lock().pulling().end_all(&mut out, header);
        // Else its memory would stay until the moment it was to be reminded at.
        self.context.timers.disarm(&self.alarm);
        self.send_out(&mut out);
    }

    /// Is deleted.
    pub fn delete(&self) {
        self.stop(|_, block| status::consumer_deleted(block));
    }

    /// The server stops.
    pub fn shut_down(&self) {
        self.stop(|request, block| {
            let (messages, bytes) = request.left();
            status::server_shutdown(block, messages, bytes);
        });
    }
}
