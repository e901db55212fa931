//! What was announced to the other side of a link about this side's interest.
//!
//! Invariant: `told` is what the other side knows once it has read every line that was made here, in their order.

use ahash::AHashMap;

#[derive(Default)]
pub struct ToldInterest {
    /// The weight of each `subject` or `subject queue`.
    told: AHashMap<Box<[u8]>, u32>,
}

impl ToldInterest {
    /// The key of a subject, or of a queue group on it.
    pub fn key(subject: &[u8], queue: Option<&[u8]>) -> Vec<u8> {
        match queue {
            None => subject.to_vec(),
            Some(queue) => [subject, b" ", queue].concat(),
        }
    }

    /// Notes how many want this now, and appends the line that announces it, if the other side does not know yet.
    pub fn update(&mut self, key: &[u8], weight: u32, lines: &mut Vec<u8>) {
        let known = self.told.get(key).copied().unwrap_or(0);
        if known == weight {
            return;
        }
        if weight == 0 {
            self.told.remove(key);
            lines.extend_from_slice(b"LS- ");
            lines.extend_from_slice(key);
        } else {
            self.told.insert(key.into(), weight);
            lines.extend_from_slice(b"LS+ ");
            lines.extend_from_slice(key);
            if key.contains(&b' ') {
                lines.push(b' ');
                lines.extend_from_slice(itoa::Buffer::new().format(weight).as_bytes());
            }
        }
        lines.extend_from_slice(b"\r\n");
    }

    /// Everything that was announced to the other side, to check again.
    pub fn keys(&self) -> Vec<Box<[u8]>> {
        self.told.keys().cloned().collect()
    }
}

/// The subject and the queue group of a key.
pub fn split_key(key: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b' ', key) {
        None => (key, None),
        Some(blank) => (&key[..blank], Some(&key[blank + 1..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_side_hears_only_what_changes() {
        let mut interest = ToldInterest::default();
        let mut lines = Vec::new();
        let group = ToldInterest::key(b"a", Some(b"q"));

        interest.update(b"a", 1, &mut lines);
        interest.update(b"a", 1, &mut lines);
        interest.update(&group, 1, &mut lines);
        interest.update(&group, 3, &mut lines);
        interest.update(b"b", 0, &mut lines);
        interest.update(b"a", 0, &mut lines);
        interest.update(&group, 0, &mut lines);

        let told = String::from_utf8(lines).unwrap();
        assert_eq!(
            told,
            "LS+ a\r\nLS+ a q 1\r\nLS+ a q 3\r\nLS- a\r\nLS- a q\r\n"
        );
        assert!(interest.keys().is_empty());
    }

    #[test]
    fn keys_are_taken_apart_as_they_were_made() {
        assert_eq!(split_key(b"a.b"), (&b"a.b"[..], None));
        assert_eq!(split_key(b"a.b q"), (&b"a.b"[..], Some(&b"q"[..])));
    }
}
