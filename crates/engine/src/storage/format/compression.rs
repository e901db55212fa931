//! Messages of sealed segments in fewer bytes.
//!
//! Every message is compressed by itself, so that damage to one costs that one only; what messages have in common is in a dictionary, which is made from
//! the segment's own messages and stands twice in front of them.
//!
//! ```text
//! offset  bytes
//! 0       4     length of the headers
//! 4       4     length of the payload
//! 8       …     one zstd frame: headers, payload
//! ```

use parking_lot::Mutex;
use zstd::bulk::{Compressor, Decompressor};

use super::bytes::{ByteReader, Put};

/// Segments with fewer bytes of messages are left as they are: the dictionary would cost more than it saves.
pub const SEGMENT_BYTES_MIN: u64 = 256 * 1024;

const HEAD_BYTES: usize = 8;

/// What messages have in common fits into this.
pub const DICTIONARY_BYTES_MAX: usize = 16 * 1024;

/// Messages a dictionary is made of.
pub const SAMPLES_MAX: usize = 2000;

/// Bytes of a sample that count.
pub const SAMPLE_BYTES_MAX: usize = 4096;

const LEVEL: i32 = 3;

/// Larger bodies are not ours.
const BODY_BYTES_MAX: usize = 1 << 29;

/// Makes a dictionary of some messages; empty if they have too little in common.
pub fn train(samples: &[Vec<u8>]) -> Vec<u8> {
    zstd::dict::from_samples(samples, DICTIONARY_BYTES_MAX).unwrap_or_default()
}

/// Turns bodies into fewer bytes.
pub struct Packer {
    compressor: Compressor<'static>,
}

impl Packer {
    pub fn new(dictionary: &[u8]) -> Option<Self> {
        let mut compressor = Compressor::with_dictionary(LEVEL, dictionary).ok()?;
        // All of this is known from elsewhere, and in small messages every byte counts.
        compressor.include_checksum(false).ok()?;
        compressor.include_contentsize(false).ok()?;
        compressor.include_dictid(false).ok()?;
        Some(Self { compressor })
    }

    /// The body in fewer bytes; `None` if it would not be fewer.
    pub fn pack(&mut self, headers: &[u8], payload: &[u8]) -> Option<Vec<u8>> {
        let body = [headers, payload].concat();
        let frame = self.compressor.compress(&body).ok()?;
        if frame.len() + HEAD_BYTES >= body.len() {
            return None;
        }
        let mut packed = Vec::with_capacity(HEAD_BYTES + frame.len());
        packed.put_u32(headers.len() as u32);
        packed.put_u32(payload.len() as u32);
        packed.extend_from_slice(&frame);
        Some(packed)
    }
}

/// Turns them back.
pub struct Unpacker {
    decompressor: Mutex<Decompressor<'static>>,
}

impl Unpacker {
    pub fn new(dictionary: &[u8]) -> Option<Self> {
        let decompressor = Decompressor::with_dictionary(dictionary).ok()?;
        Some(Self {
            decompressor: Mutex::new(decompressor),
        })
    }

    /// Puts headers and payload into `body`; returns the length of the headers, or `None` if this was not packed here.
    pub fn unpack(&self, packed: &[u8], body: &mut Vec<u8>) -> Option<usize> {
        let (headers_len, payload_len) = lengths(packed)?;
        let length = headers_len + payload_len;
        body.clear();
        body.reserve_exact(length);
        let written = self
            .decompressor
            .lock()
            .decompress_to_buffer(&packed[HEAD_BYTES..], body)
            .ok()?;
        (written == length).then_some(headers_len)
    }
}

/// The lengths of headers and payload in a packed body.
pub fn lengths(packed: &[u8]) -> Option<(usize, usize)> {
    let mut reader = ByteReader::new(packed);
    let (headers_len, payload_len) = (reader.u32()? as usize, reader.u32()? as usize);
    (headers_len <= BODY_BYTES_MAX && payload_len <= BODY_BYTES_MAX)
        .then_some((headers_len, payload_len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(number: usize) -> Vec<u8> {
        let city = ["Valletta", "Tallinn", "Porto"][number % 3];
        format!("{{\"order\": {number}, \"customer\": \"c{}\", \"state\": \"new\", \"city\": \"{city}\", \"currency\": \"EUR\"}}", number % 7)
            .into_bytes()
    }

    #[test]
    fn small_messages_that_look_alike_become_much_smaller() {
        let samples: Vec<Vec<u8>> = (0..1000).map(body).collect();
        let dictionary = train(&samples);
        let mut packer = Packer::new(&dictionary).unwrap();
        let unpacker = Unpacker::new(&dictionary).unwrap();
        let mut plain = Vec::new();

        let original = body(123_456);
        let packed = packer.pack(b"NATS/1.0\r\n\r\n", &original).unwrap();
        let headers_len = unpacker.unpack(&packed, &mut plain).unwrap();

        assert!(packed.len() * 3 < original.len() * 2, "{}", packed.len());
        assert_eq!(&plain[..headers_len], b"NATS/1.0\r\n\r\n");
        assert_eq!(&plain[headers_len..], original);
    }

    #[test]
    fn what_does_not_shrink_is_left_alone_and_nonsense_is_refused() {
        let mut packer = Packer::new(b"").unwrap();
        let unpacker = Unpacker::new(b"").unwrap();
        let mut plain = Vec::new();

        assert_eq!(packer.pack(b"", b"short"), None);
        assert_eq!(unpacker.unpack(b"", &mut plain), None);
        assert_eq!(unpacker.unpack(&[255; 40], &mut plain), None);
        let mut packed = packer.pack(b"", &[b'a'; 1000]).unwrap();
        packed[4] ^= 1;
        assert_eq!(unpacker.unpack(&packed, &mut plain), None);
    }
}
