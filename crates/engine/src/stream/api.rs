//! The API of streams, as far as the engine answers it: requests for one message. Everything else goes to Python.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::read::message_get::Query;
use super::read::reads::Reads;
use super::registry::Streams;
use crate::consumer::consumer::Consumer;
use crate::routing::router::Publisher;
use crate::routing::sink::Sink;
use crate::routing::staging::Staging;
use crate::wire::Publish;

const MESSAGE_GET: &[u8] = b"$JS.API.STREAM.MSG.GET.";
const MESSAGE_NEXT: &[u8] = b"$JS.API.CONSUMER.MSG.NEXT.";
/// The same in the dialect of 2019.
const REQUEST_NEXT: &[u8] = b"$JS.RN.";
/// Below this are the requests of 2020: `<stream>.CONSUMER.<consumer>.NEXT` is a pull.
const STREAM_OF_2020: &[u8] = b"$JS.STREAM.";
const DIRECT_GET: &[u8] = b"$JS.API.DIRECT.GET.";

/// Plain requests are short; what is longer is for Python to look at.
const PLAIN_BYTES_MAX: usize = 256 * 1024;

pub struct Api {
    streams: Weak<Streams>,
    service: u64,
    /// Who has something to read since the last `finish_read`.
    asked: Mutex<Vec<Arc<Reads>>>,
    /// Who has got a pull request since.
    pulled: Mutex<Vec<Arc<Consumer>>>,
}

impl Api {
    pub fn new(streams: &Arc<Streams>, service: u64) -> Arc<Self> {
        Arc::new(Self {
            streams: Arc::downgrade(streams),
            service,
            asked: Mutex::default(),
            pulled: Mutex::default(),
        })
    }

    /// Answers a request if it is plain; nothing is done otherwise.
    fn answer(&self, publisher: &Publisher<'_>, publish: &Publish<'_>) -> Option<()> {
        if let Some(tail) = publish.subject.strip_prefix(DIRECT_GET) {
            return self.leave_to_stream(publisher, tail);
        }
        if let Some(tail) = publish.subject.strip_prefix(MESSAGE_NEXT) {
            return self.pull(publisher, publish, tail);
        }
        if let Some(tail) = publish.subject.strip_prefix(REQUEST_NEXT) {
            allows_pull(publisher, tail)?;
            return self.pull(publisher, publish, tail);
        }
        if let Some(tail) = publish.subject.strip_prefix(STREAM_OF_2020) {
            let mut words = std::str::from_utf8(tail).ok()?.splitn(5, '.');
            let stream = words.next()?;
            let ("CONSUMER", name) = (words.next()?, words.next()?) else {
                return None;
            };
            if words.next()? != "NEXT" || words.next().is_some() {
                return None;
            }
            allows_pull(publisher, format!("{stream}.{name}").as_bytes())?;
            return self.pull_of(publisher, publish, stream, name);
        }
        let name = publish.subject.strip_prefix(MESSAGE_GET)?;
        let reply = publish.reply?;
        if publish.header_len > 0 || publish.body.len() > PLAIN_BYTES_MAX {
            return None;
        }
        let name = std::str::from_utf8(name).ok()?;
        let stream = self
            .streams
            .upgrade()?
            .find(&publisher.account.name, name)?;
        let query = Query::read(publish.payload())?;
        stream.reads().message(reply, query);
        let mut asked = self.asked.lock();
        if !asked.iter().any(|reads| Arc::ptr_eq(reads, stream.reads())) {
            asked.push(Arc::clone(stream.reads()));
        }
        Some(())
    }
}

impl Api {
    /// A pull request goes to its consumer.
    fn pull(&self, publisher: &Publisher<'_>, publish: &Publish<'_>, tail: &[u8]) -> Option<()> {
        let mut names = std::str::from_utf8(tail).ok()?.split('.');
        let (stream, name) = (names.next()?, names.next()?);
        if names.next().is_some() {
            return None;
        }
        self.pull_of(publisher, publish, stream, name)
    }

    fn pull_of(
        &self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        stream: &str,
        name: &str,
    ) -> Option<()> {
        let streams = self.streams.upgrade()?;
        let stream = streams.find(&publisher.account.name, stream)?;
        let consumer = stream.consumers().find(name)?;
        consumer.pull(publisher.connection_id, publish);
        let mut pulled = self.pulled.lock();
        if !pulled.iter().any(|other| Arc::ptr_eq(other, &consumer)) {
            pulled.push(consumer);
        }
        Some(())
    }

    /// A stream that takes direct gets has a subscription of its own for them, and answers.
    fn leave_to_stream(&self, publisher: &Publisher<'_>, tail: &[u8]) -> Option<()> {
        let name = tail.split(|byte| *byte == b'.').next()?;
        let name = std::str::from_utf8(name).ok()?;
        let streams = self.streams.upgrade()?;
        let stream = streams.find(&publisher.account.name, name)?;
        stream.settings().allow_direct.then_some(())
    }
}

/// A pull in an old dialect needs the right to one of today's: who is denied the API must not get around that. `tail` is stream and consumer.
fn allows_pull(publisher: &Publisher<'_>, tail: &[u8]) -> Option<()> {
    let is_allowed = publisher
        .permissions
        .is_none_or(|permissions| permissions.allows_publish(&[MESSAGE_NEXT, tail].concat()));
    is_allowed.then_some(())
}

impl Sink for Api {
    fn accept(
        &self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        staging: &mut Staging,
    ) -> bool {
        if self.answer(publisher, publish).is_none() {
            staging.request(self.service, publisher, publish);
        }
        true
    }

    fn finish_read(&self) {
        let asked = std::mem::take(&mut *self.asked.lock());
        for reads in asked {
            reads.finish_read();
        }
        let pulled = std::mem::take(&mut *self.pulled.lock());
        for consumer in pulled {
            consumer.work_inline();
        }
    }
}
