//! The headers of a published message that mean something to a stream.
//!
//! Names are compared as they are, upper and lower case included; of several headers of one name the first counts; blanks before a value do not.
//! Invariant: nothing is copied, and a block that is not a header block gives no headers.

use crate::wire::trusted_headers;

/// What a message asks of the stream. Values are as they were sent; what they must look like is for others to check.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PublishHeaders<'a> {
    pub message_id: Option<&'a [u8]>,
    pub expected_stream: Option<&'a [u8]>,
    pub expected_last_sequence: Option<&'a [u8]>,
    pub expected_last_subject_sequence: Option<&'a [u8]>,
    pub expected_last_subject_sequence_subject: Option<&'a [u8]>,
    pub expected_last_message_id: Option<&'a [u8]>,
    pub rollup: Option<&'a [u8]>,
    pub time_to_live: Option<&'a [u8]>,
    pub increment: Option<&'a [u8]>,
    pub batch_id: Option<&'a [u8]>,
    pub batch_sequence: Option<&'a [u8]>,
    pub batch_commit: Option<&'a [u8]>,
    pub schedule: Option<&'a [u8]>,
    pub schedule_target: Option<&'a [u8]>,
    pub schedule_source: Option<&'a [u8]>,
    pub schedule_time_to_live: Option<&'a [u8]>,
    pub schedule_rollup: Option<&'a [u8]>,
    pub schedule_time_zone: Option<&'a [u8]>,
    pub schedule_next: Option<&'a [u8]>,
    pub scheduler: Option<&'a [u8]>,
    pub stream_source: Option<&'a [u8]>,
    pub required_api_level: Option<&'a [u8]>,
    pub marker_reason: Option<&'a [u8]>,
    pub upload: Option<&'a [u8]>,
}

const PREFIX: &[u8] = b"Nats-";

impl<'a> PublishHeaders<'a> {
    /// Reads a header block: a line with the version, then one line per header.
    pub fn read(block: &'a [u8]) -> Self {
        let mut headers = Self::default();
        let mut rest = match memchr::memchr(b'\n', block) {
            Some(end) => &block[end + 1..],
            None => return headers,
        };
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.starts_with(PREFIX) {
                headers.read_line(line);
            } else if line.starts_with(trusted_headers::UPLOAD) {
                headers.take_upload(line);
            }
        }
        headers
    }

    fn read_line(&mut self, line: &'a [u8]) {
        let Some(colon) = memchr::memchr(b':', line) else {
            return;
        };
        let slot = match &line[PREFIX.len()..colon] {
            b"Msg-Id" => &mut self.message_id,
            b"Expected-Stream" => &mut self.expected_stream,
            b"Expected-Last-Sequence" => &mut self.expected_last_sequence,
            b"Expected-Last-Subject-Sequence" => &mut self.expected_last_subject_sequence,
            b"Expected-Last-Subject-Sequence-Subject" => {
                &mut self.expected_last_subject_sequence_subject
            }
            b"Expected-Last-Msg-Id" => &mut self.expected_last_message_id,
            b"Rollup" => &mut self.rollup,
            b"TTL" => &mut self.time_to_live,
            b"Incr" => &mut self.increment,
            b"Batch-Id" => &mut self.batch_id,
            b"Batch-Sequence" => &mut self.batch_sequence,
            b"Batch-Commit" => &mut self.batch_commit,
            b"Schedule" => &mut self.schedule,
            b"Schedule-Target" => &mut self.schedule_target,
            b"Schedule-Source" => &mut self.schedule_source,
            b"Schedule-TTL" => &mut self.schedule_time_to_live,
            b"Schedule-Rollup" => &mut self.schedule_rollup,
            b"Schedule-Time-Zone" => &mut self.schedule_time_zone,
            b"Schedule-Next" => &mut self.schedule_next,
            b"Scheduler" => &mut self.scheduler,
            b"Stream-Source" => &mut self.stream_source,
            b"Required-Api-Level" => &mut self.required_api_level,
            b"Marker-Reason" => &mut self.marker_reason,
            _ => return,
        };
        if slot.is_none() {
            *slot = Some(without_blanks(&line[colon + 1..]));
        }
    }

    fn take_upload(&mut self, line: &'a [u8]) {
        let value = line[trusted_headers::UPLOAD.len()..].strip_prefix(b":");
        if let (None, Some(value)) = (self.upload, value) {
            self.upload = Some(without_blanks(value));
        }
    }
}

/// Only blanks are passed over; a tab belongs to the value.
fn without_blanks(value: &[u8]) -> &[u8] {
    let blanks = value.iter().take_while(|byte| **byte == b' ').count();
    &value[blanks..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_of_several_counts_and_case_matters() {
        let block = b"NATS/1.0\r\nnats-msg-id: lower\r\nNats-Msg-Id:   one\r\nNats-Msg-Id: two\r\nOther: x\r\nNats-TTL:\r\n\r\n";

        let headers = PublishHeaders::read(block);

        assert_eq!(headers.message_id, Some(b"one".as_slice()));
        assert_eq!(headers.time_to_live, Some(b"".as_slice()));
        assert_eq!(
            headers,
            PublishHeaders {
                message_id: headers.message_id,
                time_to_live: headers.time_to_live,
                ..PublishHeaders::default()
            }
        );
    }

    #[test]
    fn a_name_that_only_begins_like_one_is_another() {
        let block = b"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence-Subject: a.>\r\nNats-Msg-Idx: 1\r\nNats-Rollup\r\n\r\n";

        let headers = PublishHeaders::read(block);

        assert_eq!(
            headers,
            PublishHeaders {
                expected_last_subject_sequence_subject: Some(b"a.>"),
                ..PublishHeaders::default()
            }
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(block in proptest::collection::vec(any::<u8>(), 0..200)) {
            PublishHeaders::read(&block);
        }
    }
}
