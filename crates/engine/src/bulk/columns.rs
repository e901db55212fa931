//! Messages gathered into the Arrow arrays of the columns that were chosen.
//!
//! A row is appended to the buffers that the arrays will be made of, so that nothing is allocated per row; a new batch begins with as much room as
//! the last one took. Invariant: all chosen columns have `rows` entries between calls.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Int64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions,
    StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, SchemaRef};

use super::header_block::{lines, HeaderLine};
use super::schema;
use super::schema::Column;

/// Counted for a row beyond its texts: sequence, times and offsets.
const ROW_BYTES_BEYOND: usize = 48;

/// Room that a batch begins with at most.
const RESERVED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One message.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub subject: &'a [u8],
    pub sequence: u64,
    pub time_ns: i64,
    /// Lines of `Name: value`.
    pub header_lines: &'a [u8],
    /// `None` for data that could not be read.
    pub payload: Option<&'a [u8]>,
}

impl Row<'_> {
    /// What it counts for in the size of a batch.
    pub fn size_bytes(&self) -> usize {
        self.subject.len()
            + self.header_lines.len()
            + self.payload.map_or(0, <[u8]>::len)
            + ROW_BYTES_BEYOND
    }
}

pub struct Columns {
    stream: String,
    chosen: Vec<Column>,
    schema: SchemaRef,
    rows: usize,
    size_bytes: usize,
    has: Has,
    subjects: TextColumnBuilder,
    sequences: Vec<i64>,
    times_ns: Vec<i64>,
    headers: HeaderColumnBuilder,
    data: TextColumnBuilder,
    /// Whether each row has data, as soon as one has none.
    data_present: Vec<bool>,
}

/// Which buffers are filled.
#[derive(Debug, Clone, Copy, Default)]
struct Has {
    subject: bool,
    sequence: bool,
    time: bool,
    headers: bool,
    data: bool,
}

impl Columns {
    pub fn new(stream: &str, chosen: &[Column]) -> Self {
        let has = |column| chosen.contains(&column);
        Self {
            stream: stream.to_owned(),
            chosen: chosen.to_vec(),
            schema: schema::schema_of(chosen),
            rows: 0,
            size_bytes: 0,
            has: Has {
                subject: has(Column::Subject),
                sequence: has(Column::Sequence),
                time: has(Column::Timestamp) || has(Column::TimeNs),
                headers: has(Column::Headers),
                data: has(Column::Data),
            },
            subjects: TextColumnBuilder::default(),
            sequences: Vec::new(),
            times_ns: Vec::new(),
            headers: HeaderColumnBuilder::default(),
            data: TextColumnBuilder::default(),
            data_present: Vec::new(),
        }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Whether payloads are wanted at all.
    pub fn has_data(&self) -> bool {
        self.has.data
    }

    #[inline]
    pub fn append(&mut self, row: &Row<'_>) {
        if self.has.subject {
            self.subjects.push_text(row.subject);
        }
        if self.has.sequence {
            self.sequences.push(row.sequence as i64);
        }
        if self.has.time {
            self.times_ns.push(row.time_ns);
        }
        if self.has.headers {
            self.headers.push(row.header_lines);
        }
        if self.has.data {
            self.push_data(row.payload);
        }
        self.rows += 1;
        self.size_bytes += row.size_bytes();
    }

    fn push_data(&mut self, payload: Option<&[u8]>) {
        self.data.push(payload.unwrap_or_default());
        if payload.is_none() && self.data_present.is_empty() {
            self.data_present.resize(self.rows, true);
        }
        if payload.is_none() || !self.data_present.is_empty() {
            self.data_present.push(payload.is_some());
        }
    }

    /// What was gathered as a batch; the columns are empty again.
    pub fn finish_batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        self.size_bytes = 0;
        let subjects = self.subjects.finish_batch(rows);
        let data = self.data.finish_batch(rows);
        let headers = self.headers.finish_batch(rows);
        let sequences = renewed(&mut self.sequences);
        let times_ns = renewed(&mut self.times_ns);
        let data_present = std::mem::take(&mut self.data_present);
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.chosen.len());
        for column in &self.chosen {
            arrays.push(match column {
                Column::Stream => repeated(&self.stream, rows)?,
                Column::Subject => Arc::new(subjects.clone().strings()?),
                Column::Sequence => Arc::new(Int64Array::new(sequences.clone(), None)),
                Column::Timestamp => {
                    let micros: Vec<i64> =
                        times_ns.iter().map(|time| time.div_euclid(1000)).collect();
                    Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"))
                }
                Column::TimeNs => Arc::new(Int64Array::new(times_ns.clone(), None)),
                Column::Headers => Arc::new(headers.clone().map()?),
                Column::Data => {
                    let nulls = (!data_present.is_empty())
                        .then(|| NullBuffer::from(data_present.as_slice()));
                    Arc::new(BinaryArray::try_new(
                        data.offsets.clone(),
                        data.values.clone(),
                        nulls,
                    )?)
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

fn renewed(values: &mut Vec<i64>) -> ScalarBuffer<i64> {
    let room = values.len();
    ScalarBuffer::from(std::mem::replace(values, Vec::with_capacity(room)))
}

fn repeated(text: &str, count: usize) -> Result<ArrayRef, ArrowError> {
    let mut texts = TextColumnBuilder::default();
    for _ in 0..count {
        texts.push(text.as_bytes());
    }
    Ok(Arc::new(texts.finish_batch(count).strings()?))
}

/// Texts one after the other.
#[derive(Default)]
struct TextColumnBuilder {
    ends: Vec<i32>,
    values: Vec<u8>,
}

/// The same, as an array is made of it.
#[derive(Clone)]
struct TakenTexts {
    offsets: OffsetBuffer<i32>,
    values: Buffer,
}

impl TextColumnBuilder {
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        if self.ends.is_empty() {
            self.ends.push(0);
        }
        self.values.extend_from_slice(bytes);
        // Batches end long before this is too large.
        self.ends.push(self.values.len() as i32);
    }

    /// Bytes that are not text become replacement characters.
    #[inline]
    fn push_text(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(_) => self.push(bytes),
            Err(_) => self.push(String::from_utf8_lossy(bytes).as_bytes()),
        }
    }

    fn count(&self) -> usize {
        self.ends.len().saturating_sub(1)
    }

    fn finish_batch(&mut self, rows_next: usize) -> TakenTexts {
        if self.ends.is_empty() {
            self.ends.push(0);
        }
        let room = self.values.len().min(RESERVED_BYTES_MAX);
        let ends = std::mem::replace(&mut self.ends, Vec::with_capacity(rows_next + 1));
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(room));
        TakenTexts {
            offsets: OffsetBuffer::new(ScalarBuffer::from(ends)),
            values: Buffer::from_vec(values),
        }
    }
}

impl TakenTexts {
    fn strings(self) -> Result<StringArray, ArrowError> {
        StringArray::try_new(self.offsets, self.values, None)
    }
}

/// Maps from names to lists of values.
#[derive(Default)]
struct HeaderColumnBuilder {
    /// Where each row's entries end.
    row_ends: Vec<i32>,
    names: TextColumnBuilder,
    /// Where each entry's values end.
    entry_ends: Vec<i32>,
    values: TextColumnBuilder,
}

#[derive(Clone)]
struct TakenHeaders {
    row_offsets: OffsetBuffer<i32>,
    names: TakenTexts,
    entry_offsets: OffsetBuffer<i32>,
    values: TakenTexts,
}

impl HeaderColumnBuilder {
    fn push(&mut self, block: &[u8]) {
        if self.row_ends.is_empty() {
            self.row_ends.push(0);
        }
        if !block.is_empty() {
            self.push_lines(block);
        }
        self.row_ends.push(self.names.count() as i32);
    }

    /// A name that comes several times is one entry with all its values.
    fn push_lines(&mut self, block: &[u8]) {
        if self.entry_ends.is_empty() {
            self.entry_ends.push(0);
        }
        for line in lines(block) {
            let is_repeated = lines(&block[..line.start]).any(|before| before.name == line.name);
            if is_repeated {
                continue;
            }
            self.names.push_text(line.name);
            let same = |other: &HeaderLine<'_>| other.name == line.name;
            for value in lines(&block[line.start..]).filter(same) {
                self.values.push_text(value.value);
            }
            self.entry_ends.push(self.values.count() as i32);
        }
    }

    fn finish_batch(&mut self, rows_next: usize) -> TakenHeaders {
        let entries = self.names.count();
        let values = self.values.count();
        TakenHeaders {
            row_offsets: taken_offsets(&mut self.row_ends, rows_next),
            names: self.names.finish_batch(entries),
            entry_offsets: taken_offsets(&mut self.entry_ends, entries),
            values: self.values.finish_batch(values),
        }
    }
}

fn taken_offsets(ends: &mut Vec<i32>, count_next: usize) -> OffsetBuffer<i32> {
    if ends.is_empty() {
        ends.push(0);
    }
    let ends = std::mem::replace(ends, Vec::with_capacity(count_next + 1));
    OffsetBuffer::new(ScalarBuffer::from(ends))
}

impl TakenHeaders {
    fn map(self) -> Result<MapArray, ArrowError> {
        let values = ListArray::try_new(
            Arc::new(schema::value_field()),
            self.entry_offsets,
            Arc::new(self.values.strings()?),
            None,
        )?;
        let entries = StructArray::try_new(
            schema::entry_fields(),
            vec![Arc::new(self.names.strings()?), Arc::new(values)],
            None,
        )?;
        MapArray::try_new(schema::entries(), self.row_offsets, entries, None, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, TimestampMicrosecondType};
    use arrow_array::Array;

    fn row<'a>(sequence: u64, header_lines: &'a [u8], payload: &'a [u8]) -> Row<'a> {
        Row {
            subject: b"a.b",
            sequence,
            time_ns: 1_700_000_000_000_001_999,
            header_lines,
            payload: Some(payload),
        }
    }

    #[test]
    fn rows_come_out_as_they_went_in() {
        let mut columns = Columns::new("S", &Column::ALL);
        columns.append(&row(1, b"A: 1\r\nB: 2\r\nA:3\r\n\r\n", b"x"));
        columns.append(&row(2, b"", b""));

        let batch = columns.finish_batch().unwrap();

        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch.schema().field(0).name(), "stream");
        assert_eq!(batch.column(0).as_string::<i32>().value(1), "S");
        assert_eq!(batch.column(1).as_string::<i32>().value(0), "a.b");
        assert_eq!(
            batch.column(2).as_primitive::<Int64Type>().values(),
            &[1, 2]
        );
        let times = batch.column(3).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(times.value(0), 1_700_000_000_000_001);
        let headers = batch.column(5).as_map();
        assert_eq!(headers.value_length(0), 2);
        assert_eq!(headers.value_length(1), 0);
        assert_eq!(headers.null_count(), 0);
        let values = headers.values().as_list::<i32>();
        assert_eq!(values.value(0).as_string::<i32>().value(1), "3");
        assert_eq!(batch.column(6).as_binary::<i32>().value(0), b"x");
    }

    #[test]
    fn columns_are_empty_after_they_were_taken() {
        let mut columns = Columns::new("S", &[Column::Headers, Column::Data]);
        columns.append(&row(1, b"A: 1\r\n", b"x"));
        columns.finish_batch().unwrap();
        columns.append(&row(2, b"B: 1\r\n", b"yz"));

        let batch = columns.finish_batch().unwrap();

        assert_eq!(batch.num_rows(), 1);
        assert_eq!(batch.column(1).as_binary::<i32>().value(0), b"yz");
    }

    #[test]
    fn data_that_cannot_be_read_is_null_and_nothing_else_is() {
        let mut columns = Columns::new("S", &[Column::Data]);
        for payload in [Some(&b"a"[..]), None, Some(b"c")] {
            columns.append(&Row {
                payload,
                ..row(1, b"", b"")
            });
        }

        let batch = columns.finish_batch().unwrap();

        let data = batch.column(0);
        assert_eq!(data.null_count(), 1);
        assert!(data.is_null(1));
        assert_eq!(data.as_binary::<i32>().value(2), b"c");
    }

    #[test]
    fn bytes_that_are_no_text_do_not_break_a_batch() {
        let mut columns = Columns::new("S", &Column::ALL);
        columns.append(&Row {
            subject: b"a\xff",
            header_lines: b"\xfe: \xfd\r\n",
            ..row(1, b"", b"\xff")
        });

        let batch = columns.finish_batch().unwrap();

        assert_eq!(batch.column(1).as_string::<i32>().value(0), "a\u{fffd}");
    }
}
