//! The figures of all streams and consumers for monitoring, as JSON: sizes, lag, the age of what is not acknowledged, and how long syncs take.
//!
//! Invariant: at most `SHOWN_MAX` streams and as many consumers are named, because clients make them; the rest is only counted.

use serde::Serialize;

use crate::consumer::consumer::Consumer;
use crate::storage::disk::sync_times::BOUNDS_MICROS;
use crate::stream::registry::Streams;
use crate::stream::stream::Stream;

/// Streams, and consumers, that are named at most.
const SHOWN_MAX: usize = 1000;

#[derive(Serialize)]
struct StreamFigures {
    account: String,
    stream: String,
    messages: u64,
    bytes: u64,
    last_sequence: u64,
    consumers: usize,
}

#[derive(Serialize)]
struct ConsumerFigures {
    account: String,
    stream: String,
    consumer: String,
    pending: u64,
    ack_pending: usize,
    redelivered: usize,
    waiting: usize,
    /// When the oldest message that is delivered and not acknowledged was stored; 0 if there is none.
    oldest_unacknowledged_ns: i64,
}

#[derive(Default, Serialize)]
struct AllFigures {
    streams: Vec<StreamFigures>,
    consumers: Vec<ConsumerFigures>,
    streams_left_out: usize,
    consumers_left_out: usize,
    sync_bounds_micros: Vec<u64>,
    /// One more than there are bounds.
    sync_counts: Vec<u64>,
    sync_total_ns: u64,
}

impl Streams {
    pub fn figures(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut figures = AllFigures {
            sync_bounds_micros: BOUNDS_MICROS.to_vec(),
            sync_counts: vec![0; BOUNDS_MICROS.len() + 1],
            ..AllFigures::default()
        };
        for stream in self.all() {
            figures.add_stream(&stream);
        }
        let by_name = |one: &StreamFigures| (one.account.clone(), one.stream.clone());
        figures.streams.sort_by_cached_key(by_name);
        figures.consumers.sort_by_cached_key(|one| {
            (
                one.account.clone(),
                one.stream.clone(),
                one.consumer.clone(),
            )
        });
        serde_json::to_vec(&figures)
    }
}

impl AllFigures {
    fn add_stream(&mut self, stream: &Stream) {
        let times = stream.store().sync_times();
        for (sum, count) in self.sync_counts.iter_mut().zip(times.counts()) {
            *sum += count;
        }
        self.sync_total_ns += times.total_ns();
        let consumers = stream.consumers().all();
        let settings = stream.settings();
        if self.streams.len() < SHOWN_MAX {
            let counts = stream.store().messages().counts();
            self.streams.push(StreamFigures {
                account: stream.account.name.clone(),
                stream: settings.name.clone(),
                messages: counts.messages,
                bytes: counts.bytes,
                last_sequence: counts.last_sequence,
                consumers: consumers.len(),
            });
        } else {
            self.streams_left_out += 1;
        }
        for consumer in consumers.iter() {
            if self.consumers.len() < SHOWN_MAX {
                self.consumers
                    .push(of_consumer(stream, &settings.name, consumer));
            } else {
                self.consumers_left_out += 1;
            }
        }
    }
}

fn of_consumer(stream: &Stream, name: &str, consumer: &Consumer) -> ConsumerFigures {
    let (mut figures, oldest) = consumer.with_core(|core, context, now_ns| {
        let pending = core.recount(context.messages, now_ns, false);
        let figures = ConsumerFigures {
            account: stream.account.name.clone(),
            stream: name.to_owned(),
            consumer: consumer.name.clone(),
            pending,
            ack_pending: core.acks().pending_count(),
            redelivered: core.acks().redelivered_count(),
            waiting: core.pulling().len(),
            oldest_unacknowledged_ns: 0,
        };
        (figures, core.acks().first_pending())
    });
    // Read without the consumer's lock: this may wait for the disk.
    if let Some(sequence) = oldest {
        let stored = stream.store().messages().read(sequence).ok().flatten();
        figures.oldest_unacknowledged_ns = stored.map_or(0, |message| message.time_ns);
    }
    figures
}
