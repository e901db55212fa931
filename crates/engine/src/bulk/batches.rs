//! The rows of one range on their way into batches of the size that was asked for.
//!
//! Invariant: a batch has at most `batch_rows` rows and, unless it is one row, at most `batch_bytes`; rows keep their order.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::columns::{Columns, Row};
use super::decompress::Compression;
use super::options::{BadPayload, BatchShape};
use super::schema::Column;
use crate::common::error::EngineError;
use crate::common::subject;

pub struct Batches {
    columns: Columns,
    batch_rows: usize,
    batch_bytes: usize,
    compression: Compression,
    bad_payload: BadPayload,
    /// What has to be looked at here, as the server could not.
    filters: Vec<Vec<u8>>,
    opened: Vec<u8>,
    full: Vec<RecordBatch>,
    pub rows: u64,
    pub first_sequence: u64,
    pub last_sequence: u64,
}

impl Batches {
    /// With `filters` where the server cannot look at subjects.
    pub fn new(shape: &BatchShape, filters: Vec<Vec<u8>>) -> Self {
        Self {
            columns: Columns::new(&shape.stream, &shape.columns),
            batch_rows: shape.batch_rows,
            batch_bytes: shape.batch_bytes,
            compression: shape.decompress,
            bad_payload: shape.bad_payload,
            filters,
            opened: Vec::new(),
            full: Vec::new(),
            rows: 0,
            first_sequence: 0,
            last_sequence: 0,
        }
    }

    /// Takes one message.
    pub fn push(&mut self, row: &Row<'_>) -> Result<(), EngineError> {
        if !self.filters.is_empty() && !self.is_wanted(row.subject) {
            return Ok(());
        }
        if self.compression != Compression::None && self.columns.has_data() {
            return self.push_compressed(row);
        }
        self.append(row)
    }

    fn push_compressed(&mut self, row: &Row<'_>) -> Result<(), EngineError> {
        let mut opened = std::mem::take(&mut self.opened);
        let compressed = row.payload.unwrap_or_default();
        let payload = match self.compression.open(compressed, &mut opened) {
            Ok(()) => Some(opened.as_slice()),
            Err(_) if self.bad_payload == BadPayload::Null => None,
            Err(error) => {
                return Err(EngineError::Data(format!(
                    "message {} does not decompress ({error}): choose another way to decompress, or NULL for such data",
                    row.sequence
                )))
            }
        };
        let appended = self.append(&Row { payload, ..*row });
        self.opened = opened;
        appended
    }

    fn append(&mut self, row: &Row<'_>) -> Result<(), EngineError> {
        let is_full = self.columns.rows() >= self.batch_rows
            || self.columns.size_bytes() + row.size_bytes() > self.batch_bytes;
        if is_full {
            self.end_batch()?;
        }
        self.columns.append(row);
        self.rows += 1;
        self.last_sequence = row.sequence;
        if self.first_sequence == 0 {
            self.first_sequence = row.sequence;
        }
        Ok(())
    }

    /// Adds a batch made elsewhere, with its first and last sequence.
    pub fn push_batch(
        &mut self,
        batch: RecordBatch,
        first_sequence: u64,
        last_sequence: u64,
    ) -> Result<(), EngineError> {
        self.rows += batch.num_rows() as u64;
        self.last_sequence = last_sequence;
        if self.first_sequence == 0 {
            self.first_sequence = first_sequence;
        }
        if self.compression == Compression::None || !self.columns.has_data() {
            self.full.push(batch);
            return Ok(());
        }
        self.push_opened(&batch, first_sequence, last_sequence)
    }

    /// The same with its data decompressed: cut again, as data may become much larger.
    fn push_opened(
        &mut self,
        batch: &RecordBatch,
        first_sequence: u64,
        last_sequence: u64,
    ) -> Result<(), EngineError> {
        let wrong = |error: &dyn std::fmt::Display| EngineError::Data(error.to_string());
        let schema = batch.schema();
        let place = schema.index_of(Column::Data.name());
        let place = place.map_err(|error| wrong(&error))?;
        let Some(stored) = batch.column(place).as_binary_opt::<i32>() else {
            return Err(wrong(&"the column data is not binary"));
        };
        let mut start = 0;
        while start < batch.num_rows() {
            let mut builder = BinaryBuilder::new();
            let mut size_bytes = 0;
            let mut end = start;
            while end < batch.num_rows() && (end == start || size_bytes < self.batch_bytes) {
                match self.compression.open(stored.value(end), &mut self.opened) {
                    Ok(()) => builder.append_value(&self.opened),
                    Err(_) if self.bad_payload == BadPayload::Null => builder.append_null(),
                    Err(error) => {
                        return Err(wrong(&format!(
                            "a message between {first_sequence} and {last_sequence} does not decompress ({error}): choose another way to decompress, or NULL for such data"
                        )))
                    }
                }
                size_bytes += self.opened.len();
                end += 1;
            }
            let mut columns = batch.slice(start, end - start).columns().to_vec();
            columns[place] = Arc::new(builder.finish());
            let opened = RecordBatch::try_new(Arc::clone(&schema), columns);
            self.full.push(opened.map_err(|error| wrong(&error))?);
            start = end;
        }
        Ok(())
    }

    /// The columns that are wanted.
    pub fn schema(&self) -> &SchemaRef {
        self.columns.schema()
    }

    fn is_wanted(&self, text: &[u8]) -> bool {
        self.filters
            .iter()
            .any(|filter| subject::matches(filter, text))
    }

    /// What was begun becomes a batch, if it has rows.
    pub fn end_batch(&mut self) -> Result<(), EngineError> {
        if self.columns.rows() > 0 {
            let batch = self.columns.finish_batch();
            self.full
                .push(batch.map_err(|error| EngineError::Data(error.to_string()))?);
        }
        Ok(())
    }

    /// The batches that are full.
    pub fn take_full(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.full)
    }
}
