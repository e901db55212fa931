//! What a consumer says without a message: the header blocks of its statuses, byte for byte those of nats-server.
//!
//! Each function appends one whole block. Counts are taken as any integer, because a request for less than nothing counts
//! down from there, and its status says so.

use crate::common::go_duration;

const BEGIN: &[u8] = b"NATS/1.0 ";
const END: &[u8] = b"\r\n\r\n";

/// What follows `400 Bad Request - ` when a consumer does not take a request.
pub mod reason {
    pub const NOT_OVERFLOW: &str = "Not a Overflow Priority consumer";
    pub const NOT_PINNED_CLIENT: &str = "Not a Pinned Client Priority consumer";
    pub const PRIORITY_OUT_OF_RANGE: &str = "Priority must be between 0 and 9";
    pub const GROUP_MISSING: &str = "Priority Group missing";
    pub const GROUP_INVALID: &str = "Invalid Priority Group";
}

/// Nothing was delivered for a while; with the subject of the flow control request that nobody has answered.
pub fn idle_heartbeat(
    out: &mut Vec<u8>,
    consumer_sequence: u64,
    stream_sequence: u64,
    stalled: Option<&[u8]>,
) {
    out.extend_from_slice(b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: ");
    put(out, consumer_sequence);
    out.extend_from_slice(b"\r\nNats-Last-Stream: ");
    put(out, stream_sequence);
    if let Some(subject) = stalled {
        out.extend_from_slice(b"\r\nNats-Consumer-Stalled: ");
        out.extend_from_slice(subject);
    }
    out.extend_from_slice(END);
}

/// The receiver is asked to say that it is still there.
pub fn flow_control_request(out: &mut Vec<u8>) {
    fixed(out, "100 FlowControl Request");
}

pub fn bad_request(out: &mut Vec<u8>, reason: &str) {
    out.extend_from_slice(b"NATS/1.0 400 Bad Request - ");
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(END);
}

pub fn no_messages(out: &mut Vec<u8>) {
    fixed(out, "404 No Messages");
}

/// A request that does not wait, and others have asked for all there is.
pub fn requests_pending(out: &mut Vec<u8>) {
    fixed(out, "408 Requests Pending");
}

pub fn request_timeout(out: &mut Vec<u8>, messages: impl itoa::Integer, bytes: impl itoa::Integer) {
    with_rest(out, "408 Request Timeout", messages, bytes);
}

/// The next message is larger than what is left of a request.
pub fn message_too_large(
    out: &mut Vec<u8>,
    messages: impl itoa::Integer,
    bytes: impl itoa::Integer,
) {
    with_rest(out, "409 Message Size Exceeds MaxBytes", messages, bytes);
}

/// All messages were delivered, and not all bytes.
pub fn batch_completed(out: &mut Vec<u8>, messages: impl itoa::Integer, bytes: impl itoa::Integer) {
    with_rest(out, "409 Batch Completed", messages, bytes);
}

pub fn batch_exceeded(out: &mut Vec<u8>, batch_max: impl itoa::Integer) {
    exceeded(out, "MaxRequestBatch of ");
    put(out, batch_max);
    out.extend_from_slice(END);
}

pub fn expires_exceeded(out: &mut Vec<u8>, expires_ns_max: i64) {
    exceeded(out, "MaxRequestExpires of ");
    go_duration::write(out, expires_ns_max);
    out.extend_from_slice(END);
}

pub fn bytes_exceeded(out: &mut Vec<u8>, bytes_max: impl itoa::Integer) {
    exceeded(out, "MaxRequestMaxBytes of ");
    put(out, bytes_max);
    out.extend_from_slice(END);
}

/// No more requests may wait. One that asks for heartbeats gets no status.
pub fn waiting_exceeded(out: &mut Vec<u8>) {
    fixed(out, "409 Exceeded MaxWaiting");
}

pub fn push_based(out: &mut Vec<u8>) {
    fixed(out, "409 Consumer is push based");
}

pub fn consumer_deleted(out: &mut Vec<u8>) {
    fixed(out, "409 Consumer Deleted");
}

pub fn server_shutdown(out: &mut Vec<u8>, messages: impl itoa::Integer, bytes: impl itoa::Integer) {
    with_rest(out, "409 Server Shutdown", messages, bytes);
}

pub fn api_level_required(out: &mut Vec<u8>) {
    fixed(out, "412 Required Api Level");
}

/// A request came from a client that was pinned, while another one is.
pub fn pin_mismatch(out: &mut Vec<u8>) {
    fixed(out, "423 Nats-Pin-Id mismatch");
}

/// A request that waits is from a client that was pinned, and another one is now.
pub fn wrong_pin(out: &mut Vec<u8>, messages: impl itoa::Integer, bytes: impl itoa::Integer) {
    with_rest(out, "423 Nats-Wrong-Pin-Id", messages, bytes);
}

fn fixed(out: &mut Vec<u8>, status: &str) {
    out.extend_from_slice(BEGIN);
    out.extend_from_slice(status.as_bytes());
    out.extend_from_slice(END);
}

fn exceeded(out: &mut Vec<u8>, limit: &str) {
    out.extend_from_slice(b"NATS/1.0 409 Exceeded ");
    out.extend_from_slice(limit.as_bytes());
}

/// A status of a request that ends, with what is left of it.
fn with_rest(
    out: &mut Vec<u8>,
    status: &str,
    messages: impl itoa::Integer,
    bytes: impl itoa::Integer,
) {
    out.extend_from_slice(BEGIN);
    out.extend_from_slice(status.as_bytes());
    out.extend_from_slice(b"\r\nNats-Pending-Messages: ");
    put(out, messages);
    out.extend_from_slice(b"\r\nNats-Pending-Bytes: ");
    put(out, bytes);
    out.extend_from_slice(END);
}

fn put(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_heartbeat_says_how_far_it_is_and_what_it_waits_for() {
        assert_eq!(
            written(|out| idle_heartbeat(out, 0, 60, None)),
            "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 0\r\nNats-Last-Stream: 60\r\n\r\n"
        );
        assert_eq!(
            written(|out| idle_heartbeat(out, 4, 5, Some(b"$JS.FC.S.D.wHIB"))),
            "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 4\r\nNats-Last-Stream: 5\r\nNats-Consumer-Stalled: $JS.FC.S.D.wHIB\r\n\r\n"
        );
    }

    #[test]
    fn a_request_that_ends_is_told_what_is_left_of_it() {
        let rest = "\r\nNats-Pending-Messages: 2\r\nNats-Pending-Bytes: 77\r\n\r\n";
        for (block, status) in [
            (
                written(|out| request_timeout(out, 2, 77)),
                "408 Request Timeout",
            ),
            (
                written(|out| message_too_large(out, 2, 77)),
                "409 Message Size Exceeds MaxBytes",
            ),
            (
                written(|out| batch_completed(out, 2, 77)),
                "409 Batch Completed",
            ),
            (
                written(|out| server_shutdown(out, 2, 77)),
                "409 Server Shutdown",
            ),
            (
                written(|out| wrong_pin(out, 2, 77)),
                "423 Nats-Wrong-Pin-Id",
            ),
        ] {
            assert_eq!(block, format!("NATS/1.0 {status}{rest}"));
        }
        assert_eq!(
            written(|out| batch_completed(out, -6i64, 956u64)),
            "NATS/1.0 409 Batch Completed\r\nNats-Pending-Messages: -6\r\nNats-Pending-Bytes: 956\r\n\r\n"
        );
    }

    #[test]
    fn a_request_that_is_refused_is_told_why() {
        for (block, status) in [
            (
                written(|out| bad_request(out, reason::GROUP_MISSING)),
                "400 Bad Request - Priority Group missing",
            ),
            (
                written(|out| batch_exceeded(out, 3)),
                "409 Exceeded MaxRequestBatch of 3",
            ),
            (
                written(|out| expires_exceeded(out, 60_000_000_000)),
                "409 Exceeded MaxRequestExpires of 1m0s",
            ),
            (
                written(|out| bytes_exceeded(out, 100)),
                "409 Exceeded MaxRequestMaxBytes of 100",
            ),
            (written(waiting_exceeded), "409 Exceeded MaxWaiting"),
            (written(push_based), "409 Consumer is push based"),
            (written(consumer_deleted), "409 Consumer Deleted"),
            (written(api_level_required), "412 Required Api Level"),
            (written(pin_mismatch), "423 Nats-Pin-Id mismatch"),
            (written(no_messages), "404 No Messages"),
            (written(requests_pending), "408 Requests Pending"),
            (written(flow_control_request), "100 FlowControl Request"),
        ] {
            assert_eq!(block, format!("NATS/1.0 {status}\r\n\r\n"));
        }
    }
}
