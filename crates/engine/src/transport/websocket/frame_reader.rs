//! Turns the frames of a client into the bytes of its session, in the buffer that they were read to.
//!
//! What a message says goes to the front of that buffer, since it is never longer than its frames; only what was compressed is longer, and that goes to `unread`,
//! together with everything after it. Where one message ends and the next begins means nothing to a session.
//!
//! What a session has not taken yet is bounded: when enough is there, the rest of a read stays as it came until that was taken, since a read may hold hundreds of messages that
//! grow a thousandfold.
//!
//! Invariant: a message that is compressed holds at most as many bytes as allowed, before and after; a control frame holds at most 125; no message is inflated while
//! `UNREAD_BYTES_ENOUGH` are unread.

use super::byte_queue::ByteQueue;
use super::deflate;
use super::deflate::InflateError;
use super::frames;
use super::frames::{apply_mask, Header, Opcode, HEADER_BYTES_MAX};

/// Bytes of the session after which the next message waits for them to be taken: many small messages are handed over at once, and large ones one by one.
const UNREAD_BYTES_ENOUGH: usize = 64 * 1024;

const STATUS_PROTOCOL_ERROR: u16 = 1002;
const STATUS_INVALID_DATA: u16 = 1007;
const STATUS_TOO_LARGE: u16 = 1009;

#[derive(Debug, Default)]
pub struct WebSocketFrameReader {
    /// A client that agreed to send no masks does without, and a server has none.
    unmasked: bool,
    /// This side is the client, whose answers are masked.
    is_client: bool,
    /// Compression was agreed on.
    inflates: bool,
    /// The beginning of a header that has not arrived as a whole.
    header: Vec<u8>,
    frame: Option<WebSocketFrame>,
    /// The frames of one message are not over.
    in_message: bool,
    /// That message is compressed.
    is_compressed: bool,
    compressed: Vec<u8>,
    control: Vec<u8>,
    /// Bytes of the session that did not fit into the buffer.
    unread: ByteQueue,
    /// Frames that are looked at when everything unread was taken.
    undecoded: ByteQueue,
}

/// A frame whose header was read.
#[derive(Debug)]
struct WebSocketFrame {
    opcode: Opcode,
    is_final: bool,
    mask: [u8; 4],
    payload_bytes: u64,
    received_bytes: u64,
}

/// What a read brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DecodedFrames {
    /// Bytes of the session, at the front of the buffer; more may be unread.
    pub count: usize,
    /// Frames to answer with.
    pub answers: Vec<u8>,
    pub end: Option<WebSocketEnd>,
}

/// Nothing more will be read; `frame` is the close frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketEnd {
    pub cause: CloseCause,
    pub frame: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseCause {
    /// The client said that it goes.
    ByPeer,
    Violation(String),
    TooLarge,
}

impl WebSocketEnd {
    fn violation(text: String) -> Self {
        Self::new(STATUS_PROTOCOL_ERROR, text)
    }

    fn new(status: u16, text: String) -> Self {
        let mut frame = Vec::new();
        frames::put_close(&mut frame, status, &text);
        Self {
            cause: CloseCause::Violation(text),
            frame,
        }
    }

    fn too_large() -> Self {
        let mut frame = Vec::new();
        frames::put_close(
            &mut frame,
            STATUS_TOO_LARGE,
            "Maximum Message Payload Exceeded",
        );
        Self {
            cause: CloseCause::TooLarge,
            frame,
        }
    }
}

impl WebSocketFrameReader {
    pub fn new(unmasked: bool, inflates: bool) -> Self {
        Self {
            unmasked,
            inflates,
            ..Self::default()
        }
    }

    /// The reader of a client.
    pub fn of_client(inflates: bool) -> Self {
        Self {
            is_client: true,
            ..Self::new(true, inflates)
        }
    }

    /// Bytes of memory that are held.
    pub fn held_bytes(&self) -> usize {
        self.compressed.capacity() + self.unread.held_bytes() + self.undecoded.held_bytes()
    }

    /// Whether something of the last read is left: `read_on` comes before the next one.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty() || !self.undecoded.is_empty()
    }

    /// Decodes what was read. Nothing may be left of what was read before. A compressed message may hold `message_bytes_max`.
    pub fn decode(&mut self, bytes: &mut [u8], message_bytes_max: usize) -> DecodedFrames {
        debug_assert!(!self.has_unread());
        let (decoded, taken) = self.decode_front(bytes, message_bytes_max);
        if decoded.end.is_none() {
            self.undecoded.put(&bytes[taken..]);
        }
        decoded
    }

    /// Goes on with what is left of the last read, and moves bytes of the session to the front of `target`. It may be that there are none.
    pub fn read_on(&mut self, target: &mut [u8], message_bytes_max: usize) -> DecodedFrames {
        if !self.unread.is_empty() {
            return DecodedFrames {
                count: self.unread.take(target),
                ..DecodedFrames::default()
            };
        }
        let mut undecoded = std::mem::take(&mut self.undecoded);
        let bytes = undecoded.rest_mut();
        let (mut decoded, taken) = self.decode_front(bytes, message_bytes_max);
        let count = decoded.count.min(target.len());
        target[..count].copy_from_slice(&bytes[..count]);
        self.unread.put_before(&bytes[count..decoded.count]);
        decoded.count = count;
        if decoded.end.is_none() {
            undecoded.skip(taken);
            self.undecoded = undecoded;
        }
        decoded
    }

    /// Decodes until enough is unread, or to the end. Says how many bytes that took.
    fn decode_front(
        &mut self,
        bytes: &mut [u8],
        message_bytes_max: usize,
    ) -> (DecodedFrames, usize) {
        let mut decoded = DecodedFrames::default();
        let mut position = 0;
        while self.unread.len() < UNREAD_BYTES_ENOUGH {
            if self.frame.is_none() {
                match self.begin_frame(&bytes[position..]) {
                    Ok((taken, true)) => position += taken,
                    Ok((taken, false)) => return (decoded, position + taken),
                    Err(end) => {
                        decoded.end = Some(end);
                        return (decoded, position);
                    }
                }
            }
            let result = self.take_payload(bytes, &mut position, &mut decoded, message_bytes_max);
            if let Err(end) = result {
                decoded.end = Some(end);
                break;
            }
            if self.frame.is_some() {
                break;
            }
        }
        (decoded, position)
    }

    /// Reads the next header. Says how many bytes it took, and whether that was all of it.
    fn begin_frame(&mut self, bytes: &[u8]) -> Result<(usize, bool), WebSocketEnd> {
        let before = self.header.len();
        let header = if before == 0 {
            Header::read(bytes)
        } else {
            let room = HEADER_BYTES_MAX - before;
            self.header
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
            Header::read(&self.header)
        };
        match header.map_err(WebSocketEnd::violation)? {
            Some(header) => {
                self.header.clear();
                self.check(&header).map_err(WebSocketEnd::violation)?;
                Ok((header.header_bytes - before, true))
            }
            None => {
                if before == 0 {
                    self.header.extend_from_slice(bytes);
                }
                Ok((bytes.len(), false))
            }
        }
    }

    /// Whether this frame may come now; then it does.
    fn check(&mut self, header: &Header) -> Result<(), String> {
        let refuse = |text: &str| Err(text.to_owned());
        if header.is_compressed && !self.inflates {
            return refuse("compressed frame received without negotiated permessage-deflate");
        }
        if header.mask.is_none() != self.unmasked {
            return refuse(match self.unmasked {
                false => "mask bit missing",
                true => "mask bit set although none was agreed on",
            });
        }
        match header.opcode {
            Opcode::Close | Opcode::Ping | Opcode::Pong => {
                if !header.is_final {
                    return refuse("control frame does not have final bit set");
                }
                if header.is_compressed {
                    return refuse("control frame must not be compressed");
                }
            }
            Opcode::Text | Opcode::Binary => {
                if self.in_message {
                    return refuse(
                        "new message started before final frame for previous message was received",
                    );
                }
                self.is_compressed = header.is_compressed;
                self.in_message = !header.is_final;
            }
            Opcode::Continuation => {
                if !self.in_message || header.is_compressed {
                    return refuse("invalid continuation frame");
                }
                self.in_message = !header.is_final;
            }
        }
        self.frame = Some(WebSocketFrame {
            opcode: header.opcode,
            is_final: header.is_final,
            mask: header.mask.unwrap_or_default(),
            payload_bytes: header.payload_bytes,
            received_bytes: 0,
        });
        Ok(())
    }

    /// Takes what is there of the present frame, and ends the frame if that is all.
    fn take_payload(
        &mut self,
        bytes: &mut [u8],
        position: &mut usize,
        decoded: &mut DecodedFrames,
        message_bytes_max: usize,
    ) -> Result<(), WebSocketEnd> {
        let Some(frame) = &mut self.frame else {
            return Ok(());
        };
        let missing = frame.payload_bytes - frame.received_bytes;
        let count = missing.min((bytes.len() - *position) as u64) as usize;
        let payload = *position..*position + count;
        if !self.unmasked {
            // Only the lowest bits of the offset matter.
            let offset = (frame.received_bytes % 4) as usize;
            apply_mask(&mut bytes[payload.clone()], frame.mask, offset);
        }
        frame.received_bytes += count as u64;
        *position += count;
        let is_over = frame.received_bytes == frame.payload_bytes;
        let (opcode, is_final) = (frame.opcode, frame.is_final);
        if opcode.is_control() {
            self.control.extend_from_slice(&bytes[payload]);
        } else if self.is_compressed {
            if self.compressed.len() + count > message_bytes_max {
                return Err(WebSocketEnd::too_large());
            }
            self.compressed.extend_from_slice(&bytes[payload]);
        } else if self.unread.is_empty() {
            bytes.copy_within(payload, decoded.count);
            decoded.count += count;
        } else {
            self.unread.put(&bytes[payload]);
        }
        if !is_over {
            return Ok(());
        }
        self.frame = None;
        if opcode.is_control() {
            let payload = std::mem::take(&mut self.control);
            let before = decoded.answers.len();
            let ended = end_control(opcode, &payload, decoded);
            if self.is_client && decoded.answers.len() > before {
                let mut frame = decoded.answers.split_off(before);
                frames::mask_control(&mut frame);
                decoded.answers.extend_from_slice(&frame);
            }
            return ended;
        }
        if is_final && std::mem::take(&mut self.is_compressed) {
            return self.inflate(message_bytes_max);
        }
        Ok(())
    }

    fn inflate(&mut self, message_bytes_max: usize) -> Result<(), WebSocketEnd> {
        let mut compressed = std::mem::take(&mut self.compressed);
        let unread = self.unread.bytes_mut();
        deflate::inflate(&mut compressed, unread, message_bytes_max).map_err(|error| match error {
            InflateError::TooLarge => WebSocketEnd::too_large(),
            InflateError::Invalid => {
                WebSocketEnd::new(STATUS_INVALID_DATA, "invalid compressed data".to_owned())
            }
        })
    }
}

/// A control frame is complete.
fn end_control(
    opcode: Opcode,
    payload: &[u8],
    decoded: &mut DecodedFrames,
) -> Result<(), WebSocketEnd> {
    match opcode {
        Opcode::Ping => frames::put_control(&mut decoded.answers, Opcode::Pong, payload),
        Opcode::Close => return Err(answer_close(payload)),
        _ => {}
    }
    Ok(())
}

/// What to answer to a close frame: the same, if it makes sense.
fn answer_close(payload: &[u8]) -> WebSocketEnd {
    let mut frame = Vec::new();
    match payload {
        [] => frames::put_control(&mut frame, Opcode::Close, &[]),
        [_] => return WebSocketEnd::violation("close frame payload cannot be 1 byte".to_owned()),
        [high, low, text @ ..] => {
            let status = u16::from_be_bytes([*high, *low]);
            if !is_valid_status(status) {
                return WebSocketEnd::violation(format!("invalid close status code {status}"));
            }
            match std::str::from_utf8(text) {
                Ok(text) => frames::put_close(&mut frame, status, text),
                Err(_) => frames::put_close(
                    &mut frame,
                    STATUS_INVALID_DATA,
                    "invalid utf8 body in close frame",
                ),
            }
        }
    }
    WebSocketEnd {
        cause: CloseCause::ByPeer,
        frame,
    }
}

/// Whether a peer may send this status: some are reserved, and some mean that there was none.
fn is_valid_status(status: u16) -> bool {
    matches!(status, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
#[path = "frame_reader_tests.rs"]
mod tests;
