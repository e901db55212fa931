//! Messages that go on to another account: requests for imported services, and the answers to them.
//!
//! They are sent when the account they were published in is done with, by the same thread and with the same staging. Invariant: a message goes through at most
//! `IMPORTS_IN_A_ROW_MAX` imports, so that imports in a circle end.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use serde::Serialize;

use super::imports::replies;
use super::imports::service_import::{ServiceImport, IMPORTS_IN_A_ROW_MAX};
use super::imports::PendingReply;
use super::mappings::Mapped;
use super::router::{Publisher, Router};
use super::subscription::{Receiver, Subscription};
use crate::connection::staging::Staging;
use crate::statistics::unix_ns;
use crate::stream::moment;
use crate::wire::{header_lines, Publish};

/// Acknowledgements are sent where a message says, in whatever account: these replies stay as they are.
const ACKNOWLEDGEMENT: &[u8] = b"$JS.ACK.";

/// The header that tells a service who asks.
const REQUEST_INFORMATION: &str = "Nats-Request-Info";

/// Who asks, as far as a service may know.
#[derive(Serialize)]
struct RequestInformation {
    acc: String,
    #[serde(skip_serializing_if = "is_zero")]
    rtt: u64,
    #[serde(flatten)]
    shared: Option<Requester>,
}

/// What is told where the import shares it.
#[derive(Serialize)]
struct Requester {
    start: String,
    host: String,
    id: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    lang: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    ver: String,
    server: String,
    kind: &'static str,
    client_type: &'static str,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Router {
    /// Sends on what was noted while a message was delivered, and says to how many it went.
    pub(super) fn send_onward(
        &mut self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
        depth: usize,
    ) -> u32 {
        let mut deliveries = 0;
        for subscription in staging.take_onward() {
            if depth >= IMPORTS_IN_A_ROW_MAX {
                break;
            }
            deliveries += match &subscription.receiver {
                Receiver::Import(import) => {
                    self.send_request(import, publisher, publish, staging, depth)
                }
                Receiver::Reply(pending) => self.send_answer(
                    pending,
                    &subscription,
                    publisher,
                    publish,
                    buffer,
                    staging,
                    depth,
                ),
                _ => 0,
            };
        }
        deliveries
    }

    /// Sends a request to the account that exports the service.
    fn send_request(
        &mut self,
        import: &ServiceImport,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        staging: &mut Staging,
        depth: usize,
    ) -> u32 {
        let exporter = &import.exporter;
        let mut subject = Vec::new();
        if !import.map.forward(publish.subject, &mut subject) {
            return 0;
        }
        let mut mapped = Vec::new();
        match exporter.map(&subject, self.random(), &mut mapped) {
            Mapped::Unchanged => {}
            Mapped::Changed => subject = mapped,
            Mapped::Lost => return 0,
        }
        let reply = match publish.reply {
            Some(reply) if !reply.starts_with(ACKNOWLEDGEMENT) => {
                let replies = exporter.replies();
                let expected = replies.and_then(|replies| {
                    replies.expect(import, publisher.account, reply, publisher.now_ms)
                });
                match expected {
                    Some(subject) => Some(subject),
                    None => return 0,
                }
            }
            other => other.map(<[u8]>::to_vec),
        };
        let information = self.request_information(import, publisher);
        let mut body = Vec::new();
        let header_len = header_lines::set(
            publish.header(),
            REQUEST_INFORMATION.as_bytes(),
            &information,
            &mut body,
        );
        body.extend_from_slice(publish.payload());
        let total = body.len();
        body.extend_from_slice(b"\r\n");
        let mut digits = [itoa::Buffer::new(), itoa::Buffer::new()];
        let [header_digits, total_digits] = &mut digits;
        let request = Publish {
            subject: &subject,
            reply: reply.as_deref(),
            header_size_text: header_digits.format(header_len).as_bytes(),
            total_size_text: total_digits.format(total).as_bytes(),
            header_len,
            body: &body[..total],
        };
        let publisher = Publisher {
            account: exporter,
            // What it may do in its own account says nothing about this one: that exports the service.
            permissions: None,
            no_responders: false,
            trace: None,
            ..*publisher
        };
        let deliveries = staging.copying(|staging| {
            let direct = self.deliver_found(&publisher, &request, &body, staging);
            direct + self.send_onward(&publisher, &request, &body, staging, depth + 1)
        });
        if let (0, Some(reply), Some(replies)) = (deliveries, &reply, exporter.replies()) {
            replies.forget(reply);
        }
        deliveries
    }

    /// Sends an answer to the account that asked.
    #[allow(
        clippy::too_many_arguments,
        reason = "a publish with all that belongs to it"
    )]
    fn send_answer(
        &mut self,
        pending: &PendingReply,
        subscription: &Subscription,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
        depth: usize,
    ) -> u32 {
        if !pending.admit(publish.body.is_empty(), publisher.now_ms) {
            return 0;
        }
        // What a consumer sends has the subject it was stored under, wherever it goes.
        let is_plain = publish.subject.starts_with(replies::PREFIX);
        let answer = Publish {
            subject: if is_plain {
                &pending.reply
            } else {
                publish.subject
            },
            ..*publish
        };
        let (routes, _) = pending.account.find(&pending.reply);
        let answering = Publisher {
            account: &pending.account,
            permissions: None,
            no_responders: false,
            trace: None,
            ..*publisher
        };
        let direct = self.deliver_to(&routes, &answering, &answer, buffer, staging);
        let deliveries = direct + self.send_onward(&answering, &answer, buffer, staging, depth + 1);
        if pending.is_over() {
            if let Some(replies) = publisher.account.replies() {
                replies.forget(&subscription.subject);
            }
        }
        deliveries
    }

    fn request_information(&self, import: &ServiceImport, publisher: &Publisher<'_>) -> Vec<u8> {
        let shared = self.shared();
        let connection = shared.connection(publisher.connection_id);
        let rtt = connection.as_ref().map_or(0, |connection| {
            connection.round_trip_micros.load(Ordering::Relaxed) * 1_000
        });
        let requester = connection.filter(|_| import.share).map(|connection| {
            let identity = connection.identity.lock().clone();
            Requester {
                start: moment_text(connection.started),
                host: connection.remote_address.ip().to_string(),
                id: connection.id,
                user: identity.user,
                name: identity.name,
                lang: identity.language,
                ver: identity.version,
                server: shared.server_information().server_name,
                kind: "Client",
                client_type: connection.connection_type.client_type(),
            }
        });
        let information = RequestInformation {
            acc: publisher.account.name.clone(),
            rtt,
            shared: requester,
        };
        serde_json::to_vec(&information).expect("strings and numbers always serialise")
    }
}

fn moment_text(time: SystemTime) -> String {
    let mut text = Vec::new();
    moment::write(&mut text, unix_ns(time) as i64);
    String::from_utf8_lossy(&text).into_owned()
}
