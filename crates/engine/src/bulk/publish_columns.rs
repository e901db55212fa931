//! Rows to be published, as Arrow has them.
//!
//! Invariant: every column has the type that its name asks for, so reading a row cannot fail.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, ListArray, MapArray,
    RecordBatch, StringArray,
};
use arrow_schema::DataType;

use crate::common::error::EngineError;

pub struct PublishColumns {
    rows: usize,
    subject: Option<TextColumn>,
    data: TextColumn,
    headers: Option<HeaderColumn>,
    message_id: Option<TextColumn>,
}

/// A column of bytes or texts.
enum TextColumn {
    String(StringArray),
    LargeString(LargeStringArray),
    Binary(BinaryArray),
    LargeBinary(LargeBinaryArray),
}

/// A column of names with values.
struct HeaderColumn {
    map: MapArray,
    names: TextColumn,
    values: Values,
}

enum Values {
    One(TextColumn),
    Many(ListArray, TextColumn),
}

impl PublishColumns {
    pub fn read(batch: &RecordBatch) -> Result<Self, EngineError> {
        let (mut subject, mut data, mut headers, mut message_id) = (None, None, None, None);
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            match field.name().as_str() {
                "subject" => subject = Some(texts("subject", column)?),
                name @ ("data" | "value") => {
                    if data.replace(texts(name, column)?).is_some() {
                        return Err(EngineError::Data(
                            "there are both data and value: leave one out".to_owned(),
                        ));
                    }
                }
                "headers" => headers = Some(HeaderColumn::read(column)?),
                "msg_id" => message_id = Some(texts("msg_id", column)?),
                other => {
                    return Err(EngineError::Data(format!(
                        "the column {other:?} has no place in a message: drop it; subject, data or value, headers and msg_id have"
                    )))
                }
            }
        }
        let Some(data) = data else {
            return Err(EngineError::Data(
                "there is no column data or value: messages need one".to_owned(),
            ));
        };
        Ok(Self {
            rows: batch.num_rows(),
            subject,
            data,
            headers,
            message_id,
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn has_message_id(&self) -> bool {
        self.message_id.is_some()
    }

    pub fn subject(&self, row: usize) -> Option<&[u8]> {
        self.subject.as_ref()?.get(row)
    }

    pub fn message_id(&self, row: usize) -> Option<&[u8]> {
        self.message_id.as_ref()?.get(row)
    }

    pub fn data(&self, row: usize) -> &[u8] {
        self.data.get(row).unwrap_or_default()
    }

    /// Adds names and values of a row; a name with several values comes several times.
    pub fn put_headers<'a>(&'a self, row: usize, out: &mut Vec<(&'a [u8], &'a [u8])>) {
        if let Some(headers) = &self.headers {
            headers.put(row, out);
        }
    }
}

impl HeaderColumn {
    fn read(column: &ArrayRef) -> Result<Self, EngineError> {
        let Some(map) = column.as_map_opt() else {
            return Err(wrong("headers", column.data_type()));
        };
        let values = match map.values().as_list_opt::<i32>() {
            Some(lists) => Values::Many(lists.clone(), texts("headers", lists.values())?),
            None => Values::One(texts("headers", map.values())?),
        };
        Ok(Self {
            map: map.clone(),
            names: texts("headers", map.keys())?,
            values,
        })
    }

    fn put<'a>(&'a self, row: usize, out: &mut Vec<(&'a [u8], &'a [u8])>) {
        if self.map.is_null(row) {
            return;
        }
        let offsets = self.map.value_offsets();
        for entry in offsets[row] as usize..offsets[row + 1] as usize {
            let name = self.names.get(entry).unwrap_or_default();
            match &self.values {
                Values::One(values) => out.extend(values.get(entry).map(|value| (name, value))),
                Values::Many(lists, values) => {
                    if lists.is_null(entry) {
                        continue;
                    }
                    let ends = lists.value_offsets();
                    for place in ends[entry] as usize..ends[entry + 1] as usize {
                        out.extend(values.get(place).map(|value| (name, value)));
                    }
                }
            }
        }
    }
}

impl TextColumn {
    /// `None` for NULL.
    #[inline]
    fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::String(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            Self::LargeString(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            Self::Binary(array) => array.is_valid(row).then(|| array.value(row)),
            Self::LargeBinary(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

fn texts(name: &str, column: &ArrayRef) -> Result<TextColumn, EngineError> {
    Ok(match column.data_type() {
        DataType::Utf8 => TextColumn::String(column.as_string().clone()),
        DataType::LargeUtf8 => TextColumn::LargeString(column.as_string().clone()),
        DataType::Binary => TextColumn::Binary(column.as_binary().clone()),
        DataType::LargeBinary => TextColumn::LargeBinary(column.as_binary().clone()),
        other => return Err(wrong(name, other)),
    })
}

fn wrong(name: &str, data_type: &DataType) -> EngineError {
    let wanted = match name {
        "headers" => "map<string, list<string>>",
        "data" | "value" => "binary or string",
        _ => "string",
    };
    EngineError::Data(format!(
        "the column {name:?} has the type {data_type}: make it {wanted}"
    ))
}
