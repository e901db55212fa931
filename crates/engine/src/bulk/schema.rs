//! The columns a message has as a row, and their types: exactly those that Spark expects for the same columns.
//!
//! Invariant: every field is nullable, as a batch with a field that is not would be refused, though only `data` ever is NULL.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    Stream,
    Subject,
    Sequence,
    Timestamp,
    TimeNs,
    Headers,
    Data,
}

impl Column {
    pub const ALL: [Self; 7] = [
        Self::Stream,
        Self::Subject,
        Self::Sequence,
        Self::Timestamp,
        Self::TimeNs,
        Self::Headers,
        Self::Data,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Subject => "subject",
            Self::Sequence => "sequence",
            Self::Timestamp => "timestamp",
            Self::TimeNs => "time_ns",
            Self::Headers => "headers",
            Self::Data => "data",
        }
    }

    pub fn data_type(self) -> DataType {
        match self {
            Self::Stream | Self::Subject => DataType::Utf8,
            Self::Sequence | Self::TimeNs => DataType::Int64,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Headers => DataType::Map(Arc::new(entries_field()), false),
            Self::Data => DataType::Binary,
        }
    }
}

/// The schema of these columns, in their order.
pub fn schema_of(columns: &[Column]) -> SchemaRef {
    let fields: Vec<Field> = columns
        .iter()
        .map(|column| Field::new(column.name(), column.data_type(), true))
        .collect();
    Arc::new(Schema::new(fields))
}

fn entries_field() -> Field {
    Field::new("entries", DataType::Struct(entry_fields()), false)
}

/// Key and values of one header.
pub fn entry_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::List(Arc::new(value_field())), true),
    ])
}

/// One value of a header.
pub fn value_field() -> Field {
    Field::new("element", DataType::Utf8, true)
}

/// The field that `headers` arrays are made of.
pub fn entries() -> Arc<Field> {
    Arc::new(entries_field())
}
