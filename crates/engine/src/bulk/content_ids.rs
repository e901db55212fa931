//! Ids of messages made of what they say, so that a task that is run again stores nothing twice, in whatever order its rows come this time.
//!
//! An id is `<prefix>-<hash of subject, headers and data>-<occurrence>`: the same message twice in one task has two ids. Invariant: the set of ids
//! depends on the set of messages alone.

use std::io::Write;

use ahash::AHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::common::error::EngineError;

/// Messages that one task may have: each is remembered, in some 16 to 32 bytes.
const MESSAGES_MAX: usize = 16_000_000;

pub struct ContentIds {
    prefix: String,
    occurrences: AHashMap<u64, u32>,
    /// What is hashed.
    content: Vec<u8>,
}

impl ContentIds {
    pub fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            occurrences: AHashMap::new(),
            content: Vec::new(),
        }
    }

    /// Appends the id of the next message. Headers come as names and values in any order.
    pub fn put(
        &mut self,
        subject: &[u8],
        headers: &mut [(&[u8], &[u8])],
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        // Stable, so that the values of one name keep their order.
        headers.sort_by(|one, other| one.0.cmp(other.0));
        self.content.clear();
        self.part(subject);
        for (name, value) in headers.iter() {
            self.part(name);
            self.part(value);
        }
        self.content.extend_from_slice(data);
        let hash = xxh3_128(&self.content);
        if self.occurrences.len() >= MESSAGES_MAX {
            return Err(EngineError::Data(format!(
                "one task has more than {MESSAGES_MAX} messages: split the rows into more partitions"
            )));
        }
        let occurrence = self.occurrences.entry(hash as u64).or_default();
        // Writing to memory does not fail.
        let _ = write!(out, "{}-{hash:032x}-{occurrence}", self.prefix);
        *occurrence += 1;
        Ok(())
    }

    /// With its length, so that no two contents are the same bytes.
    fn part(&mut self, bytes: &[u8]) {
        self.content
            .extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.content.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Subject, headers and payload.
    type Message<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

    fn ids(messages: &[Message<'_>]) -> Vec<String> {
        let mut ids = ContentIds::new("q-1-0");
        let id = |(subject, headers, data): &(&str, &[(&str, &str)], &str)| {
            let mut headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
                .collect();
            let mut out = Vec::new();
            ids.put(subject.as_bytes(), &mut headers, data.as_bytes(), &mut out)
                .unwrap();
            String::from_utf8(out).unwrap()
        };
        messages.iter().map(id).collect()
    }

    #[test]
    fn the_order_of_messages_and_headers_changes_no_id() {
        let one: (&str, &[(&str, &str)], &str) = ("a", &[("A", "1"), ("B", "2")], "x");
        let again: (&str, &[(&str, &str)], &str) = ("a", &[("B", "2"), ("A", "1")], "x");
        let other: (&str, &[(&str, &str)], &str) = ("b", &[], "x");

        let mut forwards = ids(&[one, other, one]);
        let mut backwards = ids(&[again, again, other]);

        forwards.sort();
        backwards.sort();
        assert_eq!(forwards, backwards);
        forwards.dedup();
        assert_eq!(forwards.len(), 3);
    }

    #[test]
    fn what_moves_between_the_parts_of_a_message_changes_its_id() {
        let all = ids(&[
            ("ab", &[], "c"),
            ("a", &[], "bc"),
            ("a", &[("b", "")], "c"),
            ("a", &[("", "b")], "c"),
        ]);

        for (place, id) in all.iter().enumerate() {
            assert!(!all[..place].contains(id));
            assert!(id.starts_with("q-1-0-"));
            assert!(id.ends_with("-0"));
        }
    }
}
