//! Reading by a scan of the server: it makes the batches, and this puts them together again.
//!
//! What the server sends is described in `stream::scan`. Every chunk that was taken is answered, which lets the server send another. Invariant: bytes of one
//! piece are together in one buffer, which the arrays of its batch then share.

use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use serde::{Deserialize, Serialize};

use super::batches::Batches;
use super::frames;
use super::frames::MessageFrame;
use super::header_block::HeaderBlock;
use super::options::RowOptions;
use super::rows::RowSource;
use super::schema::Column;
use crate::common::error::EngineError;

/// A piece is a batch: 8 MiB, or one message with its headers, and what Arrow adds.
const PIECE_BYTES_MAX: u64 = 512 * 1024 * 1024;

pub struct ScanSource {
    subject: String,
    inbox: String,
    sid: String,
    request: Vec<u8>,
    made: String,
    chunks: String,
    decoder: StreamDecoder,
    piece: Vec<u8>,
    piece_bytes: usize,
    first_sequence: u64,
    last_sequence: u64,
    is_finished: bool,
}

#[derive(Serialize)]
struct BulkScanRequest<'a> {
    deliver_subject: &'a str,
    start: u64,
    end: u64,
    columns: Vec<&'a str>,
    subjects: &'a [String],
    batch_rows: usize,
    batch_bytes: usize,
}

#[derive(Deserialize)]
struct ScanAnswer {
    error: Option<ScanAnswerError>,
}

#[derive(Deserialize)]
struct ScanAnswerError {
    #[serde(default)]
    description: String,
}

impl ScanSource {
    pub fn new(options: &RowOptions) -> Self {
        let chunks = format!("{}.rows", options.inbox);
        let request = BulkScanRequest {
            deliver_subject: &chunks,
            start: options.start,
            end: options.end,
            columns: options
                .columns
                .iter()
                .map(|one| Column::name(*one))
                .collect(),
            subjects: &options.subjects,
            batch_rows: options.batch_rows,
            batch_bytes: options.batch_bytes,
        };
        Self {
            subject: format!("{}.STREAM.SCAN.ROWS.{}", options.api_prefix, options.stream),
            request: serde_json::to_vec(&request).expect("numbers and texts can be written"),
            made: format!("{}.made", options.inbox),
            chunks,
            inbox: options.inbox.clone(),
            sid: options.sid.to_string(),
            decoder: StreamDecoder::new(),
            piece: Vec::new(),
            piece_bytes: 0,
            first_sequence: 0,
            last_sequence: 0,
            is_finished: options.end <= options.start,
        }
    }

    fn answer(&self, frame: &MessageFrame<'_>) -> Result<(), EngineError> {
        let block = HeaderBlock::read(frame.header);
        if block.code().is_some() {
            return Err(EngineError::Refused(format!(
                "nobody answers scans ({}): a consumer can read the stream",
                block.text()
            )));
        }
        let answer: ScanAnswer = serde_json::from_slice(frame.payload).map_err(|error| {
            EngineError::Protocol(format!("the server's answer is not understood: {error}"))
        })?;
        match answer.error {
            Some(error) => Err(EngineError::Refused(error.description)),
            None => Ok(()),
        }
    }

    fn chunk(
        &mut self,
        frame: &MessageFrame<'_>,
        batches: &mut Batches,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let block = HeaderBlock::read(frame.header);
        if block.code().is_some() {
            return self.end_mark(&block, batches);
        }
        if let Some(reply) = frame.reply {
            out.extend_from_slice(b"PUB ");
            out.extend_from_slice(reply);
            out.extend_from_slice(b" 0\r\n\r\n");
        }
        if let Some(size) = block.number(b"Jetlake-Size") {
            if size > PIECE_BYTES_MAX || self.piece_bytes > 0 {
                return Err(EngineError::Protocol(
                    "the pieces of a scan do not fit together".to_owned(),
                ));
            }
            self.piece_bytes = size as usize;
            self.piece = Vec::with_capacity(self.piece_bytes);
            self.first_sequence = block.number(b"Jetlake-First").unwrap_or(0);
            self.last_sequence = block.number(b"Jetlake-Last").unwrap_or(0);
        }
        if self.piece.len() + frame.payload.len() > self.piece_bytes {
            return Err(EngineError::Protocol(
                "a piece of a scan is longer than it should be".to_owned(),
            ));
        }
        self.piece.extend_from_slice(frame.payload);
        if self.piece.len() < self.piece_bytes {
            return Ok(());
        }
        self.piece_bytes = 0;
        self.decode(batches)
    }

    fn decode(&mut self, batches: &mut Batches) -> Result<(), EngineError> {
        let broken = |error: &dyn std::fmt::Display| {
            EngineError::Protocol(format!("the server sent invalid Arrow data: {error}"))
        };
        let mut buffer = Buffer::from_vec(std::mem::take(&mut self.piece));
        while !buffer.is_empty() {
            let Some(batch) = self
                .decoder
                .decode(&mut buffer)
                .map_err(|error| broken(&error))?
            else {
                continue;
            };
            if batch.schema() != *batches.schema() {
                return Err(broken(&"its columns are others than those asked for"));
            }
            batches.push_batch(batch, self.first_sequence, self.last_sequence)?;
        }
        Ok(())
    }

    /// The server is done, well or not.
    fn end_mark(&mut self, block: &HeaderBlock<'_>, batches: &Batches) -> Result<(), EngineError> {
        if block.code() != Some(204) {
            return Err(EngineError::Lost(format!(
                "the scan broke off after sequence {}: {}",
                batches.last_sequence,
                block.text()
            )));
        }
        let rows = block.number(b"Jetlake-Rows").unwrap_or(0);
        if rows != batches.rows || self.piece_bytes > 0 {
            return Err(EngineError::Lost(format!(
                "the scan has {rows} rows, and {} arrived",
                batches.rows
            )));
        }
        self.is_finished = true;
        Ok(())
    }
}

impl RowSource for ScanSource {
    fn begin(&mut self, out: &mut Vec<u8>) {
        frames::put_subscribe(out, &format!("{}.*", self.inbox), &self.sid);
        if !self.is_finished {
            frames::put_publish(out, &self.subject, &self.made, &self.request);
        }
    }

    fn accept_frame(
        &mut self,
        frame: &MessageFrame<'_>,
        batches: &mut Batches,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        if frame.sid != self.sid.as_bytes() {
            return Ok(());
        }
        if frame.subject == self.chunks.as_bytes() {
            return self.chunk(frame, batches, out);
        }
        match frame.subject == self.made.as_bytes() {
            true => self.answer(frame),
            false => Ok(()),
        }
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.is_finished = true;
        frames::put_unsubscribe(out, &self.sid);
    }
}
