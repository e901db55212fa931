//! Messages that go on to another account: requests for imported services, and the answers to them.
//!
//! They are sent when the account they were published in is done with, by the same thread and with the same staging. Invariant: a message goes through each export once, and
//! through at most `IMPORTS_IN_A_ROW_MAX` imports, so that imports in a circle end.

use std::sync::Arc;

use super::client_information;
use super::client_information::ClientInformation;
use super::envelope::{Digits, Envelope};
use super::imports::replies;
use super::imports::service_import::{ExportIdentity, ServiceImport, IMPORTS_IN_A_ROW_MAX};
use super::imports::PendingReply;
use super::latency::{sampling, Measurement, MeasurementBegin, Outcome};
use super::mappings::Mapped;
use super::router::{Publisher, Router};
use super::staging::Staging;
use super::subscription::{Receiver, Subscription};
use crate::common::clock;
use crate::wire::stored_headers;
use crate::wire::trusted_headers::{REQUEST_INFORMATION, TRACE_DESTINATION, TRACE_DISABLED};
use crate::wire::{ack_subject, Publish};

/// The exports that a message has come through.
pub(super) struct ExportChain<'a> {
    last: &'a ExportIdentity,
    before: Option<&'a ExportChain<'a>>,
    length: usize,
}

impl<'a> ExportChain<'a> {
    fn after(before: Option<&'a ExportChain<'a>>, last: &'a ExportIdentity) -> Self {
        let length = before.map_or(0, |before| before.length) + 1;
        Self {
            last,
            before,
            length,
        }
    }

    fn has_passed(chain: Option<&ExportChain<'_>>, export: &ExportIdentity) -> bool {
        let mut next = chain;
        while let Some(chain) = next {
            if chain.last == export {
                return true;
            }
            next = chain.before;
        }
        false
    }
}

impl Router {
    /// Sends on what was noted while a message was delivered, and says to how many it went.
    pub(super) fn send_onward(
        &mut self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
        chain: Option<&ExportChain<'_>>,
    ) -> u32 {
        let mut deliveries = 0;
        for subscription in staging.take_onward() {
            if chain.is_some_and(|chain| chain.length >= IMPORTS_IN_A_ROW_MAX) {
                break;
            }
            deliveries += match &subscription.receiver {
                Receiver::Import(import) => {
                    self.send_request(import, publisher, publish, staging, chain)
                }
                Receiver::Reply(pending) => self.send_answer(
                    pending,
                    &subscription,
                    publisher,
                    publish,
                    buffer,
                    staging,
                    chain,
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
        chain: Option<&ExportChain<'_>>,
    ) -> u32 {
        if ExportChain::has_passed(chain, &import.terms.export) {
            return 0;
        }
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
        let mut trace = publisher.trace;
        if let Some(noted) = trace {
            noted.import_service(&exporter.name, publish.subject, &subject);
            if !import.allow_trace {
                if noted.only {
                    return 0;
                }
                trace = None;
            }
        }
        let measurement = self.measure(import, publisher, publish);
        let reply = match publish.reply {
            // Acknowledgements are sent where a message says, in any account: these replies stay as they are.
            Some(reply) if !reply.starts_with(ack_subject::ACK) => {
                let replies = exporter.replies();
                let (account, now_ms) = (publisher.account, publisher.now_ms);
                let expected = replies.and_then(|replies| {
                    replies.expect(&import.terms, account, reply, now_ms, measurement.clone())
                });
                match expected {
                    Some(subject) => Some(subject),
                    None => {
                        if let Some(measurement) = &measurement {
                            measurement.end(Outcome::NoResponder);
                        }
                        return 0;
                    }
                }
            }
            Some(acknowledgement) => Some(acknowledgement.to_vec()),
            None => {
                if let Some(measurement) = &measurement {
                    measurement.end(Outcome::BadRequest);
                }
                None
            }
        };
        let information = self.information_for(import, publisher, publish, chain);
        let mut request = Envelope::new(publish);
        request.set(REQUEST_INFORMATION, &information);
        if publisher.trace.is_some() {
            request.set(TRACE_DESTINATION, TRACE_DISABLED);
        }
        let body = request.into_body(publish.payload());
        let mut digits = Digits::default();
        let request = body.publish(&subject, reply.as_deref(), &mut digits);
        let publisher = Publisher {
            account: exporter,
            // What it may do in its own account says nothing about this one: that exports the service.
            permissions: None,
            no_responders: false,
            trace,
            is_imported: true,
            ..*publisher
        };
        let chain = ExportChain::after(chain, &import.terms.export);
        let deliveries = staging.copying(|staging| {
            let direct = self.deliver_found(&publisher, &request, &body.bytes, staging);
            direct + self.send_onward(&publisher, &request, &body.bytes, staging, Some(&chain))
        });
        if deliveries == 0 {
            if let (Some(reply), Some(replies)) = (&reply, exporter.replies()) {
                replies.forget(reply);
            }
            if let Some(measurement) = &measurement {
                measurement.end(Outcome::NoResponder);
            }
        }
        deliveries
    }

    /// Begins to measure a request, if its service wants that and this one is part of the sample.
    fn measure(
        &mut self,
        import: &ServiceImport,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
    ) -> Option<Arc<Measurement>> {
        let latency = import.latency.as_ref()?;
        let headers = sampling::sampled(latency.sampling_percent, publish.header(), self.random())?;
        Some(Measurement::begin(MeasurementBegin {
            latency,
            exporter: &import.exporter,
            requester: self.information_of(publisher, import.share),
            headers,
        }))
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
        chain: Option<&ExportChain<'_>>,
    ) -> u32 {
        if !pending.admit(publish.body.is_empty(), publisher.now_ms) {
            return 0;
        }
        // Answers of the server itself are not measured, as on nats-server.
        if let (Some(measurement), 1..) = (&pending.measurement, publisher.connection_id) {
            let arrived_ns = clock::system_ns();
            measurement.answer(self.information_of(publisher, true), arrived_ns);
        }
        let deliveries = match publisher.trace {
            None => self.send_back(pending, publisher, publish, buffer, staging, chain),
            Some(trace) => {
                let account = &pending.account.name;
                trace.import_service(account, publish.subject, &pending.reply);
                match trace.only {
                    true => 0,
                    // What happens in the account of the requester is not reported to the service.
                    false => self.send_back_untraced(pending, publisher, publish, staging, chain),
                }
            }
        };
        if pending.is_over() {
            if let Some(replies) = publisher.account.replies() {
                replies.forget(&subscription.subject);
            }
        }
        deliveries
    }

    #[cold]
    fn send_back_untraced(
        &mut self,
        pending: &PendingReply,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        staging: &mut Staging,
        chain: Option<&ExportChain<'_>>,
    ) -> u32 {
        let mut answer = Envelope::new(publish);
        answer.set(TRACE_DESTINATION, TRACE_DISABLED);
        let body = answer.into_body(publish.payload());
        let mut digits = Digits::default();
        let answer = body.publish(publish.subject, publish.reply, &mut digits);
        staging.copying(|staging| {
            self.send_back(pending, publisher, &answer, &body.bytes, staging, chain)
        })
    }

    fn send_back(
        &mut self,
        pending: &PendingReply,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        buffer: &[u8],
        staging: &mut Staging,
        chain: Option<&ExportChain<'_>>,
    ) -> u32 {
        // Mappings of the account that asked hold for answers, too.
        let mut mapped = Vec::new();
        let reply: &[u8] = match pending
            .account
            .map(&pending.reply, self.random(), &mut mapped)
        {
            Mapped::Unchanged => &pending.reply,
            Mapped::Changed => &mapped,
            Mapped::Lost => return 0,
        };
        // What a consumer sends has the subject it was stored under, wherever it goes.
        let is_plain = publish.subject.starts_with(replies::PREFIX);
        // Who asked may answer the answer, by the same terms.
        let back = match publish.reply {
            Some(back) if !back.starts_with(ack_subject::ACK) => {
                let (replies, now_ms) = (pending.account.await_replies(), publisher.now_ms);
                let expected =
                    replies.expect(&pending.terms, publisher.account, back, now_ms, None);
                match expected {
                    Some(subject) => Some(subject),
                    None => return 0,
                }
            }
            other => other.map(<[u8]>::to_vec),
        };
        let answer = Publish {
            subject: if is_plain { reply } else { publish.subject },
            reply: back.as_deref(),
            ..*publish
        };
        let (routes, _) = pending.account.find(reply);
        let answering = Publisher {
            account: &pending.account,
            permissions: None,
            no_responders: false,
            trace: None,
            is_imported: true,
            ..*publisher
        };
        let chain = ExportChain::after(chain, &pending.terms.export);
        let direct = self.deliver_to(&routes, &answering, &answer, buffer, staging);
        direct + self.send_onward(&answering, &answer, buffer, staging, Some(&chain))
    }

    /// What a service learns about the requester. In a chain of imports it is what the first service learns.
    fn information_for(
        &self,
        import: &ServiceImport,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        chain: Option<&ExportChain<'_>>,
    ) -> Vec<u8> {
        if chain.is_some() {
            let before = stored_headers::value(publish.header(), REQUEST_INFORMATION);
            let server = self.shared().server_information().server_name;
            let server = import.share.then_some(server.as_str());
            let service = &publisher.account.name;
            let information =
                before.and_then(|before| client_information::passed_on(before, service, server));
            if let Some(information) = information {
                return information;
            }
        }
        self.information_of(publisher, import.share).to_json()
    }

    fn information_of(&self, publisher: &Publisher<'_>, with_details: bool) -> ClientInformation {
        let shared = self.shared();
        let connection = shared.connection(publisher.connection_id);
        let account = &publisher.account.name;
        ClientInformation::new(shared, account, connection.as_deref(), with_details)
    }
}
