//! Dead letters: messages that a consumer has given up on, stored in another stream with who gave them up, why, after how many deliveries, and what they were.
//!
//! A dead letter is published into the stream that the configuration names, past its subjects, and under its rules: its limits may refuse it.
//! Invariants: a message counts as settled only when its letter is durable; a letter that is stored again, because a crash came before its consumer's
//! state was written, is stored once. Nothing here waits for a sync.

use std::sync::Arc;

use crate::consumer::consumer::Consumer;
use crate::consumer::dead_letters::{DeadLetter, HandedOver};
use crate::storage::message::{Message, StoreError};
use crate::storage::receipts::Receipt;
use crate::storage::store::Store;
use crate::stream::publish::acknowledgement::Refusal;
use crate::stream::publish::admitted::Admitted;
use crate::stream::publish::checks;
use crate::stream::publish::checks::{CheckOutcome, Publication};
use crate::stream::publish::headers::PublishHeaders;
use crate::stream::publish::ingest::Ingest;
use crate::stream::stream::Stream;
use crate::wire::stored_headers;
use crate::wire::stored_headers::Author;
use crate::wire::trusted_headers;

/// What the subjects of dead letters begin with; stream, consumer and the message's own subject follow.
const SUBJECT: &str = "dead";

const REASON: &[u8] = b"Jetlake-Dead-Reason";
const STREAM: &[u8] = b"Jetlake-Dead-Stream";
const CONSUMER: &[u8] = b"Jetlake-Dead-Consumer";
const DELIVERIES: &[u8] = b"Jetlake-Dead-Deliveries";
const ORIGINAL_SUBJECT: &[u8] = b"Jetlake-Dead-Subject";
const SEQUENCE: &[u8] = b"Jetlake-Dead-Sequence";
const MESSAGE_ID: &[u8] = b"Nats-Msg-Id";

/// Headers that would mean something to the stream the dead letter is stored in.
const MEANINGFUL: [&[u8]; 9] = [
    b"Nats-Msg-Id",
    b"Nats-Expected-",
    b"Nats-Rollup",
    b"Nats-TTL",
    b"Nats-Batch-",
    b"Nats-Schedule",
    b"Nats-Incr",
    b"Nats-Marker-Reason",
    b"Nats-Required-Api-Level",
];

/// What a stream has done with a letter.
enum LetterOutcome {
    /// It will be durable soon, or already is.
    Staged,
    /// A letter with its id was stored and is not there any more.
    Removed,
}

/// A reason comes from a client, and a header has one line.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// The headers of a letter.
fn headers(
    message: &Message,
    stream: &str,
    consumer: &str,
    letter: &DeadLetter,
    id: &str,
) -> Vec<u8> {
    let mut block = Vec::new();
    let is_meaningful = |name: &[u8]| {
        trusted_headers::is_owned(name) || MEANINGFUL.iter().any(|prefix| name.starts_with(prefix))
    };
    stored_headers::copy_without(message.headers(), is_meaningful, &mut block);
    let mut add = |name, value: &[u8]| stored_headers::add(&mut block, 0, name, value);
    add(REASON, one_line(&letter.reason).as_bytes());
    add(STREAM, stream.as_bytes());
    add(CONSUMER, consumer.as_bytes());
    add(DELIVERIES, letter.deliveries.to_string().as_bytes());
    add(ORIGINAL_SUBJECT, message.subject());
    add(SEQUENCE, letter.sequence.to_string().as_bytes());
    add(MESSAGE_ID, id.as_bytes());
    block
}

impl Stream {
    /// Publishes the dead letter of one message where the configuration says; `receipt` is completed when it is durable.
    /// Reads the message from the disk.
    pub(in crate::stream) fn hand_over_dead_letter(
        &self,
        consumer: &Consumer,
        letter: &DeadLetter,
        receipt: Arc<dyn Receipt>,
    ) -> HandedOver {
        let settings = self.settings();
        let Some(name) = &settings.dead_letters else {
            return HandedOver::Unwanted;
        };
        let Some(target) = self.neighbour(name) else {
            let text = format!("there is no stream {name:?}: create it");
            return HandedOver::Refused(text);
        };
        let message = match self.store().messages().read(letter.sequence) {
            Ok(Some(message)) => message,
            // What is gone, or damaged, can never be stored elsewhere; damage is a finding of the store.
            Ok(None) | Err(StoreError::Damaged { .. }) => return HandedOver::Gone,
            Err(error) => return HandedOver::Refused(error.to_string()),
        };
        let (stream, name) = (&settings.name, &consumer.name);
        let subject = [SUBJECT, stream, name].join(".").into_bytes();
        let subject = [subject.as_slice(), b".", message.subject()].concat();
        // Streams and consumers that are created again under the same names count from 1 again.
        let made_ns = consumer.settings().created_ns;
        let mut id = format!(
            "$dead/{stream}/{}/{name}/{made_ns}/{}/{}",
            settings.identity, letter.sequence, letter.deliveries
        );
        target.load_stored_once();
        loop {
            let publication = Publication {
                subject: &subject,
                headers: &headers(&message, stream, name, letter, &id),
                payload: message.payload(),
                now_ns: self.now_ns(),
            };
            let taken = accept_letter(
                &mut target.ingest.lock(),
                &target.store,
                &publication,
                &receipt,
            );
            match taken {
                Ok(LetterOutcome::Staged) => {
                    target.commit_soon();
                    return HandedOver::UnderWay;
                }
                // The first letter was removed, and the message is given up once more.
                Ok(LetterOutcome::Removed) => id = format!("{id}/{}", publication.now_ns),
                Err(refusal) => {
                    let name = &target.settings().name;
                    let why = refusal.description;
                    return HandedOver::Refused(format!("stream {name:?} refused it: {why}"));
                }
            }
        }
    }
}

/// Accepts a dead letter, or says at once why not.
fn accept_letter(
    ingest: &mut Ingest,
    store: &Store,
    sent: &Publication<'_>,
    receipt: &Arc<dyn Receipt>,
) -> Result<LetterOutcome, Refusal> {
    let settings = Arc::clone(ingest.settings());
    if ingest.is_full() {
        return Err(checks::refusal(429, 10167, "too many requests"));
    }
    if settings.is_mirror {
        let text = "it is a mirror, which stores no other messages: name another stream";
        return Err(checks::refusal(400, 10077, text));
    }
    let (mut subject, mut block) = (Vec::new(), Vec::new());
    let publication = ingest.as_stored(&settings, sent, Author::Server, &mut subject, &mut block);
    let headers = PublishHeaders::read(publication.headers);
    ingest.prepare(&headers, sent.now_ns);
    match checks::check(&settings, &ingest.view(store), &publication, &headers)? {
        CheckOutcome::Duplicate { sequence } => {
            let is_committed = sequence <= store.messages().marks().last_sequence;
            if is_committed && !store.messages().contains(sequence) {
                return Ok(LetterOutcome::Removed);
            }
        }
        CheckOutcome::Store(_) if !ingest.is_kept(publication.subject) => {
            let text = "it keeps nothing while it has no consumers: create one";
            return Err(checks::refusal(503, 10077, text));
        }
        CheckOutcome::Store(passed) => {
            let admitted = Admitted::new(&settings, &publication, &headers, passed);
            ingest.try_store(store, admitted, b"")?;
        }
    }
    ingest.answers().push_receipt(Arc::clone(receipt));
    Ok(LetterOutcome::Staged)
}
