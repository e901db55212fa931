//! A message that has passed its checks, as it will be stored.

use std::borrow::Cow;

use super::checks::{PassedChecks, Publication, Rollup};
use super::counter::Counter;
use super::headers::PublishHeaders;
use super::time_to_live::TimeToLive;
use crate::storage::message::NewMessage;
use crate::stream::settings::StreamSettings;
use crate::wire::stored_headers;
use crate::wire::trusted_headers;

const TIME_TO_LIVE: &[u8] = b"Nats-TTL";
const ROLLUP: &[u8] = b"Nats-Rollup";

#[derive(Debug, Clone)]
pub struct Admitted<'a> {
    pub subject: &'a [u8],
    pub headers: Cow<'a, [u8]>,
    pub payload: Cow<'a, [u8]>,
    pub time_ns: i64,
    pub expires_ns: Option<i64>,
    pub message_id: Option<&'a [u8]>,
    pub rollup: Option<Rollup>,
    pub counter: Option<Counter>,
    /// When it is due, if it is a schedule.
    pub due_ns: Option<i64>,
    /// The subject of the schedule it ends.
    pub ended_schedule: Option<Box<[u8]>>,
}

impl<'a> Admitted<'a> {
    /// An empty message.
    pub fn of(subject: &'a [u8], time_ns: i64) -> Self {
        Self {
            subject,
            headers: Cow::Borrowed(b""),
            payload: Cow::Borrowed(b""),
            time_ns,
            expires_ns: None,
            message_id: None,
            rollup: None,
            counter: None,
            due_ns: None,
            ended_schedule: None,
        }
    }

    /// A message as it was published, with what its checks brought to light.
    pub fn new(
        settings: &StreamSettings,
        publication: &Publication<'a>,
        headers: &PublishHeaders<'a>,
        passed: PassedChecks,
    ) -> Self {
        let mut admitted = Self {
            headers: Cow::Borrowed(publication.headers),
            payload: Cow::Borrowed(publication.payload),
            message_id: headers.message_id.filter(|id| !id.is_empty()),
            rollup: passed.rollup,
            due_ns: passed.planned.as_ref().map(|planned| planned.next_ns),
            ended_schedule: passed.ended_schedule,
            ..Self::of(publication.subject, publication.now_ns)
        };
        if let Some(time_to_live) = passed.time_to_live {
            admitted.expire_after(time_to_live, settings);
        }
        if passed.planned.is_some_and(|planned| planned.lacks_rollup) {
            stored_headers::add(admitted.headers.to_mut(), 0, ROLLUP, b"sub");
            admitted.rollup = Some(Rollup::Subject);
        }
        if let Some(counter) = passed.counter {
            let mut payload = Vec::new();
            counter.put_payload(&mut payload);
            admitted.payload = Cow::Owned(payload);
            if let Some(sources) = counter.sources_header() {
                let mut block = Vec::new();
                let name = trusted_headers::COUNTER_SOURCES;
                stored_headers::put_with(&admitted.headers, name, sources.as_bytes(), &mut block);
                admitted.headers = Cow::Owned(block);
            }
            admitted.counter = Some(counter);
        }
        admitted
    }

    /// Where markers are made a message stays at least as long as one would, unless the subject has only one message anyway.
    fn expire_after(&mut self, time_to_live: TimeToLive, settings: &StreamSettings) {
        let marker_s = settings.delete_marker_ttl_ns / 1_000_000_000;
        let lasting = match time_to_live {
            TimeToLive::Seconds(seconds)
                if seconds < marker_s && settings.limits.per_subject_max != Some(1) =>
            {
                TimeToLive::Seconds(marker_s)
            }
            other => other,
        };
        if lasting != time_to_live {
            let mut raised = Vec::new();
            let is_old = |name: &[u8]| name == TIME_TO_LIVE;
            stored_headers::copy_without(&self.headers, is_old, &mut raised);
            stored_headers::add(&mut raised, 0, TIME_TO_LIVE, lasting.to_string().as_bytes());
            self.headers = Cow::Owned(raised);
        }
        self.expires_ns = lasting.expiry_ns(self.time_ns);
    }

    pub fn message(&self) -> NewMessage<'_> {
        NewMessage {
            subject: self.subject,
            headers: &self.headers,
            payload: &self.payload,
            time_ns: self.time_ns,
            expires_ns: self.expires_ns,
        }
    }
}
