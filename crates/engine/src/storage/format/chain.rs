//! The chain of a stream: the link of each message is computed from the link before it and the message's own contents.
//!
//! To change a message, one must change every link after it, up to the last; that one can be written down elsewhere. A
//! removed message keeps its link, and where there is room its digest, so that its neighbours can still be verified.

use ring::digest::{Context, SHA256};

use super::record::{Record, LINK_BYTES};

pub type ChainLink = [u8; LINK_BYTES];

/// The link before the first message.
pub fn origin(stream: u64) -> ChainLink {
    let mut context = Context::new(&SHA256);
    context.update(b"jetlake chain");
    context.update(&stream.to_le_bytes());
    finish(context)
}

/// What a message contributes to the chain.
pub fn digest(record: &Record<'_>) -> ChainLink {
    let mut context = Context::new(&SHA256);
    context.update(&record.sequence.to_le_bytes());
    context.update(&record.time_ns.to_le_bytes());
    context.update(&record.expires_ns.unwrap_or(0).to_le_bytes());
    for part in [record.subject, record.headers, record.payload] {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part);
    }
    finish(context)
}

pub fn link(previous: &ChainLink, digest: &ChainLink) -> ChainLink {
    let mut context = Context::new(&SHA256);
    context.update(previous);
    context.update(digest);
    finish(context)
}

fn finish(context: Context) -> ChainLink {
    let digest = context.finish();
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// How far a chain holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verification {
    /// Messages whose link follows from the one before.
    pub verified: u64,
    /// Messages whose predecessor is gone, so that nothing can be said of their link.
    pub unproven: u64,
    /// The first message that does not follow from the one before it.
    pub broken: Option<u64>,
    /// The link of the last message: the one to write down elsewhere.
    pub last: Option<ChainLink>,
}

/// Follows a chain from record to record.
pub struct Verifier {
    previous: Option<(u64, ChainLink)>,
    verification: Verification,
}

impl Verifier {
    /// Begins before the first message a stream ever had.
    pub fn new(stream: u64, origin_sequence: u64) -> Self {
        Self {
            previous: Some((origin_sequence - 1, origin(stream))),
            verification: Verification::default(),
        }
    }

    /// The next message, or what is left of one; `digest` is what its contents give, or what was kept of them.
    pub fn follow(&mut self, sequence: u64, stored: &ChainLink, digest: Option<&ChainLink>) {
        let before = self
            .previous
            .filter(|(before, _)| before + 1 == sequence)
            .map(|(_, link)| link);
        match (before, digest) {
            (Some(before), Some(digest)) if link(&before, digest) == *stored => {
                self.verification.verified += 1;
            }
            (Some(_), Some(_)) => {
                self.verification.broken.get_or_insert(sequence);
            }
            _ => self.verification.unproven += 1,
        }
        self.previous = Some((sequence, *stored));
        self.verification.last = Some(*stored);
    }

    /// A message without a link, or one that cannot be read: the chain does not hold there.
    pub fn interrupt(&mut self, sequence: u64) {
        self.verification.broken.get_or_insert(sequence);
    }

    pub fn finish(self) -> Verification {
        self.verification
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::format::record::RecordKind;

    fn record(sequence: u64, payload: &[u8]) -> Record<'_> {
        Record {
            kind: RecordKind::Message,
            payload,
            ..Record::erased(sequence, b"")
        }
    }

    #[test]
    fn a_changed_message_breaks_the_chain_where_it_is() {
        let payloads: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        let mut links = vec![origin(9)];
        for (at, payload) in payloads.iter().enumerate() {
            let digest = digest(&record(at as u64 + 1, payload));
            links.push(link(&links[at], &digest));
        }
        let verify = |payloads: &[&[u8]], skip: Option<u64>| {
            let mut verifier = Verifier::new(9, 1);
            for (at, payload) in payloads.iter().enumerate() {
                let sequence = at as u64 + 1;
                if skip != Some(sequence) {
                    let digest = digest(&record(sequence, payload));
                    verifier.follow(sequence, &links[at + 1], Some(&digest));
                }
            }
            verifier.finish()
        };

        let good = verify(&payloads, None);
        assert_eq!((good.verified, good.broken), (4, None));
        assert_eq!(good.last, Some(links[4]));
        let changed = verify(&[b"a", b"b", b"X", b"d"], None);
        assert_eq!(changed.broken, Some(3));
        let gap = verify(&payloads, Some(2));
        assert_eq!((gap.verified, gap.unproven, gap.broken), (2, 1, None));
    }
}
