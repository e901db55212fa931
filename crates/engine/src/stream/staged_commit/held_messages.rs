//! Messages that are not stored yet: the waiting ones of a batch or an upload, one after the other in one buffer.
//!
//! Invariant: `ends` has, for each message, where its subject, its headers and its payload end in `bytes`; each begins where the one before it ends.

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct HeldMessages {
    bytes: Vec<u8>,
    ends: Vec<[usize; 3]>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldMessage<'a> {
    pub subject: &'a [u8],
    pub headers: &'a [u8],
    pub payload: &'a [u8],
}

impl HeldMessages {
    pub fn push(&mut self, message: HeldMessage<'_>) {
        let mut end = self.bytes.len();
        let parts = [message.subject, message.headers, message.payload];
        self.ends.push(parts.map(|part| {
            self.bytes.extend_from_slice(part);
            end += part.len();
            end
        }));
    }

    /// Takes the last one out again, and puts it back with other headers.
    pub fn change_last_headers(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let Some([subject_end, headers_end, payload_end]) = self.ends.pop() else {
            return;
        };
        let start = self.start_behind_last();
        let tail = self.bytes.split_off(start);
        let mut headers = tail[subject_end - start..headers_end - start].to_vec();
        change(&mut headers);
        self.push(HeldMessage {
            subject: &tail[..subject_end - start],
            headers: &headers,
            payload: &tail[headers_end - start..payload_end - start],
        });
    }

    pub fn iter(&self) -> impl Iterator<Item = HeldMessage<'_>> {
        let mut start = 0;
        self.ends
            .iter()
            .map(move |[subject_end, headers_end, payload_end]| {
                let held = HeldMessage {
                    subject: &self.bytes[start..*subject_end],
                    headers: &self.bytes[*subject_end..*headers_end],
                    payload: &self.bytes[*headers_end..*payload_end],
                };
                start = *payload_end;
                held
            })
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// What a message takes up here.
    pub fn bytes_of(message: &HeldMessage<'_>) -> usize {
        let parts = message.subject.len() + message.headers.len() + message.payload.len();
        parts + size_of::<[usize; 3]>()
    }

    fn start_behind_last(&self) -> usize {
        self.ends.last().map_or(0, |[_, _, end]| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held<'a>(subject: &'a str, headers: &'a str, payload: &'a str) -> HeldMessage<'a> {
        HeldMessage {
            subject: subject.as_bytes(),
            headers: headers.as_bytes(),
            payload: payload.as_bytes(),
        }
    }

    #[test]
    fn messages_come_out_as_they_went_in() {
        let all = [held("a", "", "1"), held("b.c", "h", ""), held("d", "", "")];
        let mut messages = HeldMessages::default();
        assert!(messages.is_empty());

        all.iter().for_each(|one| messages.push(*one));

        assert_eq!(messages.len(), 3);
        assert_eq!(messages.iter().collect::<Vec<_>>(), all);
    }

    #[test]
    fn only_the_headers_of_the_last_one_are_changed() {
        let mut messages = HeldMessages::default();
        messages.change_last_headers(|_| unreachable!("there is none"));
        messages.push(held("a", "x", "1"));
        messages.push(held("b", "y", "2"));

        messages.change_last_headers(|headers| headers.extend_from_slice(b"+z"));

        let seen: Vec<_> = messages.iter().collect();
        assert_eq!(seen, [held("a", "x", "1"), held("b", "y+z", "2")]);
    }
}
