//! Payloads that were stored compressed, opened before they become rows.
//!
//! Invariant: nothing is written beyond `OPENED_BYTES_MAX`, however small the payload that asks for it.

use std::io::{self, Read};

use serde::Deserialize;

/// What one payload may become: four times the largest message there can be.
pub const OPENED_BYTES_MAX: usize = 256 * 1024 * 1024;

const GZIP_MAGIC: &[u8] = b"\x1f\x8b";
const SNAPPY_FRAMES_MAGIC: &[u8] = b"\xff\x06\x00\x00sNaPpY";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Compression {
    #[default]
    #[serde(rename = "")]
    None,
    #[serde(rename = "zlib")]
    Zlib,
    #[serde(rename = "snappy")]
    Snappy,
    #[serde(rename = "zstd")]
    Zstd,
}

impl Compression {
    /// Opens a payload into `opened`, which is emptied first. An empty payload stays empty.
    pub fn open(self, payload: &[u8], opened: &mut Vec<u8>) -> io::Result<()> {
        opened.clear();
        if payload.is_empty() {
            return Ok(());
        }
        match self {
            Self::None => opened.extend_from_slice(payload),
            Self::Zlib if payload.starts_with(GZIP_MAGIC) => {
                read_all(flate2::read::MultiGzDecoder::new(payload), opened)?;
            }
            Self::Zlib => read_all(flate2::read::ZlibDecoder::new(payload), opened)?,
            Self::Snappy if payload.starts_with(SNAPPY_FRAMES_MAGIC) => {
                read_all(snap::read::FrameDecoder::new(payload), opened)?;
            }
            Self::Snappy => open_snappy_block(payload, opened)?,
            Self::Zstd => read_all(zstd::stream::read::Decoder::new(payload)?, opened)?,
        }
        Ok(())
    }
}

fn open_snappy_block(payload: &[u8], opened: &mut Vec<u8>) -> io::Result<()> {
    let length = snap::raw::decompress_len(payload)?;
    if length > OPENED_BYTES_MAX {
        return Err(too_large());
    }
    opened.resize(length, 0);
    let written = snap::raw::Decoder::new().decompress(payload, opened)?;
    opened.truncate(written);
    Ok(())
}

fn read_all(reader: impl Read, opened: &mut Vec<u8>) -> io::Result<()> {
    let read = reader
        .take(OPENED_BYTES_MAX as u64 + 1)
        .read_to_end(opened)?;
    if read > OPENED_BYTES_MAX {
        return Err(too_large());
    }
    Ok(())
}

fn too_large() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("it opens to more than {OPENED_BYTES_MAX} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    const TEXT: &[u8] = b"a message, a message, a message";

    fn opened(compression: Compression, payload: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = b"left from before".to_vec();
        compression.open(payload, &mut out).map(|()| out)
    }

    #[test]
    fn every_way_to_compress_is_opened() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
        zlib.write_all(TEXT).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        gzip.write_all(TEXT).unwrap();
        let block = snap::raw::Encoder::new().compress_vec(TEXT).unwrap();
        let mut frames = snap::write::FrameEncoder::new(Vec::new());
        frames.write_all(TEXT).unwrap();
        let zstd = zstd::bulk::compress(TEXT, 3).unwrap();

        for (compression, payload) in [
            (Compression::None, TEXT.to_vec()),
            (Compression::Zlib, zlib.finish().unwrap()),
            (Compression::Zlib, gzip.finish().unwrap()),
            (Compression::Snappy, block),
            (Compression::Snappy, frames.into_inner().unwrap()),
            (Compression::Zstd, zstd),
        ] {
            assert_eq!(
                opened(compression, &payload).unwrap(),
                TEXT,
                "{compression:?}"
            );
            assert_eq!(opened(compression, b"").unwrap(), b"");
        }
    }

    #[test]
    fn a_block_that_claims_too_much_is_refused_before_there_is_room_for_it() {
        let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0];

        assert!(opened(Compression::Snappy, &claim).is_err());
    }

    proptest! {
        #[test]
        fn any_payload_is_opened_or_refused(payload in proptest::collection::vec(any::<u8>(), 1..200)) {
            for compression in [Compression::Zlib, Compression::Snappy, Compression::Zstd] {
                let _ = opened(compression, &payload);
            }
        }
    }
}
