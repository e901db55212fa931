//! Reads a range straight from the files of a server on the same host, where the server says that it lies.
//!
//! Nothing is written, and nothing is trusted: every record's checksum is bound to its file and its place, so a file
//! that was replaced or rewritten, or is on another host, is noticed. The reader then falls back to the connection,
//! after the last row.
//!
//! Invariant: rows are exactly those the server named, in order, or there is an error.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::batches::Batches;
use super::columns::Row;
use super::header_block::HeaderBlock;
use super::options::FileOptions;
use crate::common::error::EngineError;
use crate::storage::format::record;
use crate::storage::format::record::{NotARecord, RecordKind};
use crate::storage::format::segment_header::{HeaderState, SegmentHeader};
use crate::storage::segment::segment_file::SegmentFile;
use crate::storage::store::pieces::FilePiece;

/// Read at once; a larger record is read as a whole.
const READ_BYTES: u64 = 1024 * 1024;

/// No record is larger.
const RECORD_BYTES_MAX: usize = 1 << 29;

pub struct StoreReader {
    pieces: VecDeque<FilePiece>,
    open: Option<OpenPiece>,
    batches: Batches,
    buffer: Vec<u8>,
    body: Vec<u8>,
    has_failed: bool,
}

/// A piece that is being read.
struct OpenPiece {
    piece: FilePiece,
    file: SegmentFile,
    position: u64,
    rows: u64,
    /// Where in `piece.gone` the next sequence is looked for.
    next_gone: usize,
    last_sequence: u64,
}

impl StoreReader {
    pub fn new(options: &[u8]) -> Result<Self, EngineError> {
        let options = FileOptions::from_json(options)?;
        let filters = options
            .subjects
            .iter()
            .map(|filter| filter.as_bytes().to_vec())
            .collect();
        Ok(Self {
            batches: Batches::new(&options.shape(), filters),
            pieces: options.pieces.into(),
            open: None,
            buffer: Vec::new(),
            body: Vec::new(),
            has_failed: false,
        })
    }

    /// The next batches; none when everything has been read.
    pub fn read(&mut self) -> Result<Vec<RecordBatch>, EngineError> {
        if self.has_failed {
            return Err(EngineError::Lost(
                "the reader has failed before: make a new one".to_owned(),
            ));
        }
        let read = self.read_some();
        self.has_failed = read.is_err();
        read
    }

    fn read_some(&mut self) -> Result<Vec<RecordBatch>, EngineError> {
        loop {
            let full = self.batches.take_full();
            if !full.is_empty() {
                return Ok(full);
            }
            let Some(mut open) = self.open.take() else {
                match self.pieces.pop_front() {
                    Some(piece) => self.open = Some(open_piece(piece)?),
                    None => {
                        self.batches.end_batch()?;
                        return Ok(self.batches.take_full());
                    }
                }
                continue;
            };
            self.read_piece(&mut open)?;
            if open.position < open.piece.to {
                self.open = Some(open);
            } else if open.rows != open.piece.rows {
                return Err(changed(&open.piece, "it has other messages than it had"));
            }
        }
    }

    /// Reads on in a piece: about as much as one call brings.
    fn read_piece(&mut self, open: &mut OpenPiece) -> Result<(), EngineError> {
        let wanted = READ_BYTES.min(open.piece.to - open.position);
        self.fill(open, wanted)?;
        let mut at = 0;
        while at < self.buffer.len() {
            let position = open.position + at as u64;
            let binding = open.file.header.binding();
            match record::decode(&self.buffer[at..], binding, position) {
                Ok((record, length)) => {
                    append_record(open, record, &mut self.body, &mut self.batches)?;
                    at += length;
                }
                Err(NotARecord::Short { bytes_needed }) if at == 0 => {
                    let left = (open.piece.to - open.position) as usize;
                    let wanted = bytes_needed.min(left).min(RECORD_BYTES_MAX);
                    if wanted <= self.buffer.len() {
                        return Err(changed(&open.piece, "a record is longer than its piece"));
                    }
                    self.fill(open, wanted as u64)?;
                }
                Err(NotARecord::Short { .. }) => break,
                Err(NotARecord::Blank | NotARecord::Damaged) => {
                    return Err(changed(&open.piece, "a record does not fit its place"))
                }
            }
        }
        // The last record's padding lies after the piece.
        open.position = (open.position + at as u64).min(open.piece.to);
        Ok(())
    }

    fn fill(&mut self, open: &OpenPiece, size_bytes: u64) -> Result<(), EngineError> {
        self.buffer.resize(size_bytes as usize, 0);
        let file = &open.file.file;
        file.read_exact_at(&mut self.buffer, open.position)
            .map_err(|error| unreadable(&open.piece, &error))
    }

    pub fn batches(&self) -> &Batches {
        &self.batches
    }
}

fn open_piece(piece: FilePiece) -> Result<OpenPiece, EngineError> {
    let file = File::open(&piece.path).map_err(|error| unreadable(&piece, &error))?;
    let header = SegmentHeader::read(&file, false).map_err(|error| unreadable(&piece, &error))?;
    let HeaderState::Good(header) = header else {
        return Err(changed(&piece, "its header is not as it should be"));
    };
    if header.identity != piece.identity || header.encrypted {
        return Err(changed(&piece, "it is another file"));
    }
    let path = piece.path.clone();
    let mut file = SegmentFile::new(header, path, Arc::new(file), None);
    if header.compressed {
        file.read_dictionary()
            .map_err(|error| unreadable(&piece, &error))?;
    }
    Ok(OpenPiece {
        position: piece.from,
        piece,
        file,
        rows: 0,
        next_gone: 0,
        last_sequence: 0,
    })
}

fn append_record(
    open: &mut OpenPiece,
    record: record::Record<'_>,
    body: &mut Vec<u8>,
    batches: &mut Batches,
) -> Result<(), EngineError> {
    if !matches!(
        record.kind,
        RecordKind::Message | RecordKind::Compressed | RecordKind::Erased
    ) {
        return Ok(());
    }
    let sequence = record.sequence;
    if sequence <= open.last_sequence
        || !(open.piece.first_sequence..=open.piece.last_sequence).contains(&sequence)
    {
        return Err(changed(&open.piece, "its messages are in another order"));
    }
    open.last_sequence = sequence;
    while let Some((_, last)) = open.piece.gone.get(open.next_gone) {
        if *last >= sequence {
            break;
        }
        open.next_gone += 1;
    }
    let gone = open.piece.gone.get(open.next_gone);
    if gone.is_some_and(|(first, _)| *first <= sequence) {
        return Ok(());
    }
    let record = match record.kind {
        RecordKind::Erased => None,
        _ => open.file.expand(record, body),
    };
    let Some(record) = record else {
        return Err(changed(&open.piece, "a message was erased or is damaged"));
    };
    open.rows += 1;
    batches.push(&Row {
        subject: record.subject,
        sequence,
        time_ns: record.time_ns,
        header_lines: HeaderBlock::read(record.headers).lines,
        payload: Some(record.payload),
    })
}

fn changed(piece: &FilePiece, what: &str) -> EngineError {
    EngineError::Lost(format!(
        "{} cannot be read beside its server ({what}): read over the connection",
        piece.path.display()
    ))
}

fn unreadable(piece: &FilePiece, error: &io::Error) -> EngineError {
    changed(piece, &error.to_string())
}
