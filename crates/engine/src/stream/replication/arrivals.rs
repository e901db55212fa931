//! Messages that come from another stream: what of the checks of a publish holds for them, and where they are put.
//!
//! They were accepted once, so what they ask of a stream is not checked again; they are stored as they are. What cannot be stored now holds up what
//! comes behind it, so nothing is passed over. Invariant: messages of one origin are stored in their order, and each at most once.

use std::borrow::Cow;
use std::sync::Arc;

use crate::storage::message::StoreError;
use crate::storage::store::Store;
use crate::stream::publish::acknowledgement::Refusal;
use crate::stream::publish::admitted::Admitted;
use crate::stream::publish::checks;
use crate::stream::publish::checks::{Rollup, View};
use crate::stream::publish::counter;
use crate::stream::publish::counter::CounterError;
use crate::stream::publish::headers::PublishHeaders;
use crate::stream::publish::ingest::{store_refusal, Ingest};
use crate::stream::publish::time_to_live::TimeToLive;
use crate::stream::settings::StreamSettings;
use crate::wire::stored_headers;
use crate::wire::trusted_headers;

/// Messages that wait for their commit, from which on none is fetched from elsewhere: publishers come first.
const WAITING_MESSAGES_MAX: u64 = 16_384;

/// The same in bytes.
const WAITING_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A message of another stream, as it will be stored.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    pub subject: &'a [u8],
    pub headers: &'a [u8],
    pub payload: &'a [u8],
    pub time_ns: i64,
    /// The one it has in the mirrored stream, and gets here.
    pub sequence: Option<u64>,
    /// Where it comes from, if it does not come from a mirrored stream: the value of its header.
    pub stream_source: &'a [u8],
}

/// Why a message is not stored.
#[derive(Debug)]
pub enum Hindrance {
    /// There is no room, or too much waits; try again later.
    Room,
    /// Something before it was refused after all: find out again how far the stream is.
    Behind,
    /// The stream has other settings now.
    Changed,
    /// It cannot be stored as long as the stream is as it is.
    Refused(Refusal),
}

/// Stages a message of another stream and returns its sequence; none if the stream has it already. `resets` is that of the store when it
/// was found out which message comes next.
pub fn stage(
    ingest: &mut Ingest,
    store: &Store,
    arrival: &Arrival<'_>,
    resets: u64,
) -> Result<Option<u64>, Hindrance> {
    let (messages, bytes) = ingest.pending().counts_behind(0);
    if messages >= WAITING_MESSAGES_MAX || bytes >= WAITING_BYTES_MAX {
        return Err(Hindrance::Room);
    }
    let settings = Arc::clone(ingest.settings());
    let mut headers = PublishHeaders::read(arrival.headers);
    if arrival.sequence.is_some() {
        headers = PublishHeaders {
            time_to_live: headers.time_to_live,
            ..PublishHeaders::default()
        };
    }
    ingest.prepare(&headers, arrival.time_ns);
    let message_id = headers.message_id.filter(|id| !id.is_empty());
    if message_id.is_some_and(|id| ingest.ids().find(id).is_some()) {
        return Ok(None);
    }
    let mut admitted = Admitted {
        headers: Cow::Borrowed(arrival.headers),
        payload: Cow::Borrowed(arrival.payload),
        message_id,
        rollup: rollup(&settings, &headers),
        expires_ns: expiry_ns(&settings, &headers, arrival.time_ns),
        ..Admitted::of(arrival.subject, arrival.time_ns)
    };
    if arrival.sequence.is_none() {
        if settings.allow_counter {
            count(ingest, store, arrival, &headers, &mut admitted)
                .map_err(|error| Hindrance::Refused(error.refusal()))?;
        }
        checks::check_size(&settings, admitted.headers.len(), admitted.payload.len())
            .map_err(Hindrance::Refused)?;
    }
    if settings.sealed {
        let text = "invalid operation on sealed stream";
        return Err(Hindrance::Refused(checks::refusal(400, 10109, text)));
    }
    let size = settings.counting.bytes(
        admitted.subject.len(),
        admitted.headers.len(),
        admitted.payload.len(),
    );
    let view = ingest.view(store);
    checks::check_room(&settings, &view, admitted.subject, size, admitted.rollup)
        .map_err(|_| Hindrance::Room)?;
    if !ingest.usage().has_room(size) {
        return Err(Hindrance::Room);
    }
    let previous_sequence = ingest.previous_sequence(store, admitted.subject);
    let appended = match store.append_following(&admitted.message(), arrival.sequence, resets) {
        Ok(Some(appended)) => appended,
        Ok(None) => return Err(Hindrance::Behind),
        Err(StoreError::Behind | StoreError::Full | StoreError::Temporary(_)) => {
            return Err(Hindrance::Room)
        }
        Err(error) => return Err(Hindrance::Refused(store_refusal(&error))),
    };
    ingest.answers().begin();
    ingest.note(store, admitted, appended, previous_sequence, b"");
    Ok(Some(appended.sequence))
}

/// Adds what the total of the origin has grown by.
fn count(
    ingest: &Ingest,
    store: &Store,
    arrival: &Arrival<'_>,
    headers: &PublishHeaders<'_>,
    admitted: &mut Admitted<'_>,
) -> Result<(), CounterError> {
    counter::read_increment(headers)?.ok_or(CounterError::IncrementMissing)?;
    let mut counter = ingest.view(store).counter_of(arrival.subject)?;
    let increment = counter.add_sourced(arrival.stream_source, arrival.subject, arrival.payload)?;
    let mut block = Vec::new();
    let text = increment.to_string();
    stored_headers::put_with(
        arrival.headers,
        counter::INCREMENT_HEADER,
        text.as_bytes(),
        &mut block,
    );
    if let Some(sources) = counter.sources_header() {
        let mut with_sources = Vec::new();
        stored_headers::put_with(
            &block,
            trusted_headers::COUNTER_SOURCES,
            sources.as_bytes(),
            &mut with_sources,
        );
        block = with_sources;
    }
    let mut payload = Vec::new();
    counter.put_payload(&mut payload);
    admitted.headers = Cow::Owned(block);
    admitted.payload = Cow::Owned(payload);
    admitted.counter = Some(counter);
    Ok(())
}

/// What a message replaces, if the stream allows that; else it says so and does nothing.
fn rollup(settings: &StreamSettings, headers: &PublishHeaders<'_>) -> Option<Rollup> {
    if !settings.allow_rollup || settings.deny_purge {
        return None;
    }
    match headers.rollup?.to_ascii_lowercase().as_slice() {
        b"sub" => Some(Rollup::Subject),
        b"all" => Some(Rollup::All),
        _ => None,
    }
}

/// When a message expires, if the stream lets messages say so.
fn expiry_ns(settings: &StreamSettings, headers: &PublishHeaders<'_>, time_ns: i64) -> Option<i64> {
    if !settings.allow_time_to_live {
        return None;
    }
    let time_to_live = TimeToLive::read(headers.time_to_live?).ok().flatten()?;
    time_to_live.expiry_ns(time_ns)
}
