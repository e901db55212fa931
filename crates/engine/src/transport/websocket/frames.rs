//! The format of a frame: its header, and the mask over what a client sends.

/// A header is never longer: two bytes, eight of length, four of mask.
pub const HEADER_BYTES_MAX: usize = 14;

/// What a control frame may carry.
pub const CONTROL_BYTES_MAX: usize = 125;

const FINAL_BIT: u8 = 0x80;
const COMPRESSED_BIT: u8 = 0x40;
const RESERVED_BITS: u8 = 0x30;
const MASK_BIT: u8 = 0x80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    pub fn is_control(self) -> bool {
        self as u8 >= Self::Close as u8
    }

    fn read(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub opcode: Opcode,
    pub is_final: bool,
    pub is_compressed: bool,
    pub payload_bytes: u64,
    pub mask: Option<[u8; 4]>,
    /// Bytes of the header itself.
    pub header_bytes: usize,
}

impl Header {
    /// Reads the header at the front of `bytes`; `None` when it has not arrived as a whole. An error is what the peer did wrong.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let &[first, second, ..] = bytes else {
            return Ok(None);
        };
        if first & RESERVED_BITS != 0 {
            return Err("RSV2 and RSV3 must be clear".to_owned());
        }
        let number = first & 0x0f;
        let opcode = Opcode::read(number).ok_or_else(|| format!("unknown opcode {number}"))?;
        let mut position = 2;
        let short_length = second & !MASK_BIT;
        if opcode.is_control() && usize::from(short_length) > CONTROL_BYTES_MAX {
            return Err(format!(
                "control frame length bigger than maximum allowed of {CONTROL_BYTES_MAX} bytes"
            ));
        }
        let payload_bytes = match short_length {
            126 => match take_bytes::<2>(bytes, &mut position) {
                None => return Ok(None),
                Some(length) => u64::from(u16::from_be_bytes(length)),
            },
            127 => match take_bytes::<8>(bytes, &mut position) {
                None => return Ok(None),
                Some(length) => u64::from_be_bytes(length),
            },
            short => u64::from(short),
        };
        if payload_bytes > i64::MAX as u64 {
            return Err("invalid 64-bit payload length".to_owned());
        }
        let mask = match second & MASK_BIT {
            0 => None,
            _ => match take_bytes::<4>(bytes, &mut position) {
                None => return Ok(None),
                mask => mask,
            },
        };
        Ok(Some(Self {
            opcode,
            is_final: first & FINAL_BIT != 0,
            is_compressed: first & COMPRESSED_BIT != 0,
            payload_bytes,
            mask,
            header_bytes: position,
        }))
    }
}

fn take_bytes<const COUNT: usize>(bytes: &[u8], position: &mut usize) -> Option<[u8; COUNT]> {
    let taken = bytes.get(*position..*position + COUNT)?;
    *position += COUNT;
    taken.try_into().ok()
}

/// The header of a whole message. A server never masks.
pub struct MessageHeader {
    bytes: [u8; HEADER_BYTES_MAX],
    length: usize,
}

impl MessageHeader {
    pub fn new(opcode: Opcode, is_compressed: bool, payload_bytes: usize) -> Self {
        let mut bytes = [0; HEADER_BYTES_MAX];
        bytes[0] = FINAL_BIT | opcode as u8;
        if is_compressed {
            bytes[0] |= COMPRESSED_BIT;
        }
        let length = if payload_bytes <= CONTROL_BYTES_MAX {
            bytes[1] = payload_bytes as u8;
            2
        } else if let Ok(short) = u16::try_from(payload_bytes) {
            bytes[1] = 126;
            bytes[2..4].copy_from_slice(&short.to_be_bytes());
            4
        } else {
            bytes[1] = 127;
            bytes[2..10].copy_from_slice(&(payload_bytes as u64).to_be_bytes());
            10
        };
        Self { bytes, length }
    }

    /// The same for a message of a client.
    pub fn masked(
        opcode: Opcode,
        is_compressed: bool,
        payload_bytes: usize,
        mask: [u8; 4],
    ) -> Self {
        let mut header = Self::new(opcode, is_compressed, payload_bytes);
        header.bytes[1] |= MASK_BIT;
        header.bytes[header.length..][..mask.len()].copy_from_slice(&mask);
        header.length += mask.len();
        header
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Appends a control frame.
pub fn put_control(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    debug_assert!(opcode.is_control() && payload.len() <= CONTROL_BYTES_MAX);
    out.extend_from_slice(MessageHeader::new(opcode, false, payload.len()).as_bytes());
    out.extend_from_slice(payload);
}

/// Puts a mask over one control frame, as a client must.
pub fn mask_control(frame: &mut Vec<u8>) {
    const HEADER_BYTES: usize = 2;
    let mask = new_mask();
    apply_mask(&mut frame[HEADER_BYTES..], mask, 0);
    frame[1] |= MASK_BIT;
    frame.splice(HEADER_BYTES..HEADER_BYTES, mask);
}

/// A mask that nobody can guess, so that nobody can make what passes look like something else.
pub fn new_mask() -> [u8; 4] {
    getrandom::u32().unwrap_or_default().to_ne_bytes()
}

/// Appends a close frame. A text that is too long is cut, and says so.
pub fn put_close(out: &mut Vec<u8>, status: u16, text: &str) {
    const DOTS: &str = "...";
    let room = CONTROL_BYTES_MAX - size_of_val(&status);
    let mut payload = status.to_be_bytes().to_vec();
    if text.len() <= room {
        payload.extend_from_slice(text.as_bytes());
    } else {
        let mut end = room - DOTS.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        payload.extend_from_slice(&text.as_bytes()[..end]);
        payload.extend_from_slice(DOTS.as_bytes());
    }
    put_control(out, Opcode::Close, &payload);
}

/// Applies a mask to bytes that are `offset` bytes after the beginning of the payload.
pub fn apply_mask(bytes: &mut [u8], mask: [u8; 4], offset: usize) {
    let mut pattern = [0; 8];
    for (index, byte) in pattern.iter_mut().enumerate() {
        *byte = mask[(offset + index) % mask.len()];
    }
    let word = u64::from_ne_bytes(pattern);
    let mut chunks = bytes.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let masked = u64::from_ne_bytes((&*chunk).try_into().expect("eight bytes")) ^ word;
        chunk.copy_from_slice(&masked.to_ne_bytes());
    }
    for (byte, key) in chunks.into_remainder().iter_mut().zip(pattern) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_soon_as_all_of_it_is_there_and_not_before() {
        for payload_bytes in [0usize, 1, 125, 126, 65_535, 65_536, 1 << 33] {
            let written = MessageHeader::new(Opcode::Binary, true, payload_bytes);
            let bytes = written.as_bytes();

            for end in 0..bytes.len() {
                assert_eq!(Header::read(&bytes[..end]), Ok(None));
            }
            let header = Header::read(bytes).unwrap().unwrap();
            assert_eq!(header.payload_bytes, payload_bytes as u64);
            assert_eq!(header.header_bytes, bytes.len());
            assert!(header.is_final && header.is_compressed && header.mask.is_none());
        }
    }

    #[test]
    fn reserved_bits_unknown_opcodes_and_lengths_beyond_63_bits_are_refused() {
        let refused = |bytes: &[u8]| Header::read(bytes).unwrap_err();

        assert!(refused(&[0xa2, 0]).contains("RSV2"));
        assert_eq!(refused(&[0x83, 0]), "unknown opcode 3");
        let too_long = [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0];
        assert!(refused(&too_long).contains("64-bit"));
    }

    #[test]
    fn a_mask_goes_on_where_it_stopped() {
        let mask = [1, 2, 3, 4];
        let plain: Vec<u8> = (0..100).collect();
        let mut whole = plain.clone();
        apply_mask(&mut whole, mask, 0);

        for cut in 0..plain.len() {
            let mut parts = plain.clone();
            let (front, back) = parts.split_at_mut(cut);
            apply_mask(front, mask, 0);
            apply_mask(back, mask, cut);
            assert_eq!(parts, whole);
        }
        apply_mask(&mut whole, mask, 0);
        assert_eq!(whole, plain);
    }

    #[test]
    fn a_control_frame_of_a_client_is_masked() {
        let mut frame = Vec::new();
        put_control(&mut frame, Opcode::Pong, b"payload");
        mask_control(&mut frame);

        let header = Header::read(&frame).unwrap().unwrap();
        let mut payload = frame[header.header_bytes..].to_vec();
        apply_mask(&mut payload, header.mask.unwrap(), 0);
        assert_eq!(payload, b"payload");
    }

    #[test]
    fn a_close_frame_holds_as_much_of_a_text_as_a_control_frame_may() {
        let mut frame = Vec::new();
        put_close(&mut frame, 1002, &"é".repeat(100));

        assert!(frame.len() <= 2 + CONTROL_BYTES_MAX);
        assert_eq!(&frame[2..4], &1002u16.to_be_bytes());
        let text = std::str::from_utf8(&frame[4..]).unwrap();
        assert!(text.ends_with("é..."));
    }
}
