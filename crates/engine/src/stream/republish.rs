//! Republishing: a message that was stored goes out once more, under another subject, and says where it is stored.

use std::sync::Arc;

use super::moment;
use super::pending::{About, Item};
use super::settings::{Republish, Settings};
use super::stored_headers;
use crate::clock::system_ns;
use crate::random::Random;
use crate::routing::account::Account;
use crate::routing::subject;
use crate::sender::{Outgoing, Sender};

pub struct Republisher<'a> {
    settings: &'a Settings,
    republish: &'a Republish,
    random: Random,
    subject: Vec<u8>,
    headers: Vec<u8>,
    text: Vec<u8>,
}

impl<'a> Republisher<'a> {
    /// None where nothing is republished.
    pub fn new(settings: &'a Settings) -> Option<Self> {
        let republish = settings.republish.as_ref()?;
        Some(Self {
            settings,
            republish,
            random: Random::seeded(system_ns() as u64),
            subject: Vec::new(),
            headers: Vec::new(),
            text: Vec::new(),
        })
    }

    /// Publishes a message that was stored, if it is among those that are.
    pub fn publish(&mut self, account: &Arc<Account>, due: &Item<'_>, sender: &mut Sender) {
        let About::Stored { sequence } = due.about else {
            return;
        };
        self.subject.clear();
        let transform = &self.republish.transform;
        if !transform.apply(due.subject, &mut self.random, &mut self.subject)
            || !subject::is_literal(&self.subject)
        {
            return;
        }
        self.headers.clear();
        self.headers.extend_from_slice(due.kept_headers);
        self.add(b"Nats-Stream", |text, settings| {
            text.extend_from_slice(settings.name.as_bytes());
        });
        self.add(b"Nats-Subject", |text, _| {
            text.extend_from_slice(due.subject)
        });
        self.add(b"Nats-Sequence", |text, _| put_number(text, sequence));
        self.add(b"Nats-Time-Stamp", |text, _| {
            moment::write(text, due.time_ns)
        });
        self.add(b"Nats-Last-Sequence", |text, _| {
            put_number(text, due.previous_sequence);
        });
        let mut payload = due.kept_payload;
        if self.republish.headers_only {
            self.add(b"Nats-Msg-Size", |text, _| {
                put_number(text, due.kept_payload.len() as u64);
            });
            payload = b"";
        }
        sender.send(
            account,
            &Outgoing {
                subject: &self.subject,
                reply: None,
                header: &self.headers,
                payload,
            },
        );
    }

    fn add(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.text.clear();
        write(&mut self.text, self.settings);
        stored_headers::add(&mut self.headers, 0, name, &self.text);
    }
}

fn put_number(text: &mut Vec<u8>, number: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
