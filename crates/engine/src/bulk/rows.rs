//! A client's reading of one range of one stream, without its socket: bytes of a server in, batches and bytes for the server out.
//!
//! Invariant: every message of the range comes exactly once and in order, or there is an error; nothing is read after one.

use arrow_array::RecordBatch;

use super::batches::Batches;
use super::deliveries::Deliveries;
use super::direct_gets::DirectGetSource;
use super::frames::{Frames, MessageFrame};
use super::options::{RowOptions, SourceKind};
use super::scans::ScanSource;
use crate::common::error::EngineError;

/// One way to get messages from a server.
pub trait RowSource: Send + Sync {
    /// Appends what must be sent first.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// Takes one message of the server.
    fn accept_frame(
        &mut self,
        frame: &MessageFrame<'_>,
        batches: &mut Batches,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError>;
    /// Whether everything has come.
    fn is_finished(&self) -> bool;
    /// Appends what leaves nothing behind on the server. Nothing is taken after it.
    fn end(&mut self, out: &mut Vec<u8>);
}

pub struct RowReader {
    frames: Frames,
    source: Box<dyn RowSource>,
    batches: Batches,
    out: Vec<u8>,
    is_over: bool,
    has_failed: bool,
}

impl RowReader {
    pub fn new(options: &[u8]) -> Result<Self, EngineError> {
        let options = RowOptions::from_json(options)?;
        let filters = |count_min: usize| match options.subjects.len() >= count_min {
            true => options
                .subjects
                .iter()
                .map(|filter| filter.as_bytes().to_vec())
                .collect(),
            false => Vec::new(),
        };
        let (mut source, filters): (Box<dyn RowSource>, _) = match options.source {
            SourceKind::Consumer => (Box::new(Deliveries::new(&options)), Vec::new()),
            SourceKind::Scan => (Box::new(ScanSource::new(&options)), Vec::new()),
            // The server looks at one filter only.
            SourceKind::DirectGet => (Box::new(DirectGetSource::new(&options)), filters(2)),
        };
        let mut out = Vec::new();
        source.begin(&mut out);
        Ok(Self {
            frames: Frames::default(),
            source,
            batches: Batches::new(&options.shape(), filters),
            out,
            is_over: false,
            has_failed: false,
        })
    }

    /// Takes what was read; returns the batches that are full, at the end all.
    pub fn feed(&mut self, data: &[u8]) -> Result<Vec<RecordBatch>, EngineError> {
        if self.has_failed {
            return Err(EngineError::Lost(
                "the reader has failed before: make a new one".to_owned(),
            ));
        }
        let (source, batches) = (&mut self.source, &mut self.batches);
        let taken = self.frames.feed(data, &mut self.out, |frame, out| {
            match source.is_finished() {
                true => Ok(()),
                false => source.accept_frame(frame, batches, out),
            }
        });
        if let Err(error) = taken {
            self.has_failed = true;
            self.stop();
            return Err(error);
        }
        if self.source.is_finished() {
            self.stop();
            self.batches.end_batch()?;
        }
        Ok(self.batches.take_full())
    }

    /// The rows that fill no batch yet.
    pub fn flush(&mut self) -> Result<Vec<RecordBatch>, EngineError> {
        self.batches.end_batch()?;
        Ok(self.batches.take_full())
    }

    /// Ends the reading here.
    pub fn stop(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.source.end(&mut self.out);
        }
    }

    /// What to send to the server now.
    pub fn to_send(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    pub fn is_finished(&self) -> bool {
        self.is_over
    }

    pub fn batches(&self) -> &Batches {
        &self.batches
    }
}
