//! What a caller may ask of a reader or a writer, as one JSON object each, with the limits of what can be asked.
//!
//! Invariant: options that were read are within their limits, and every name in them can stand in a line of the protocol.

use serde::Deserialize;

use super::decompress::Compression;
use super::schema::Column;
use crate::common::error::EngineError;
use crate::common::subject;
use crate::storage::store::pieces::FilePiece;
use crate::wire::upload_header::is_name;

/// Larger batches than these cost the receiver more memory than they save it time.
const BATCH_ROWS_MAX: usize = 1_000_000;
const BATCH_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Most messages that one request to a consumer or a Direct Get asks for.
const REQUEST_ROWS_MAX: u64 = 100_000;

/// Subjects in one request at most: it has to fit into one message.
const SUBJECTS_MAX: usize = 1024;

/// Messages that may be sent and not acknowledged at most; each is remembered.
const OUTSTANDING_MAX: usize = 1_000_000;
const OUTSTANDING_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Where rows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Consumer,
    DirectGet,
    Scan,
}

/// What becomes of data that does not decompress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadPayload {
    #[default]
    Fail,
    Null,
}

/// What to read, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowOptions {
    pub stream: String,
    pub inbox: String,
    #[serde(default = "default_sid")]
    pub sid: u64,
    #[serde(default = "default_api_prefix")]
    pub api_prefix: String,
    pub source: SourceKind,
    #[serde(default)]
    pub start: u64,
    /// Not included; 0 for where the stream ends.
    #[serde(default)]
    pub end: u64,
    #[serde(default = "default_columns")]
    pub columns: Vec<Column>,
    #[serde(default)]
    pub subjects: Vec<String>,
    #[serde(default)]
    pub decompress: Compression,
    #[serde(default)]
    pub bad_payload: BadPayload,
    #[serde(default = "default_batch_rows")]
    pub batch_rows: usize,
    #[serde(default = "default_batch_bytes")]
    pub batch_bytes: usize,
    #[serde(default = "default_request_rows")]
    pub request_rows: u64,
}

fn default_sid() -> u64 {
    1
}

fn default_api_prefix() -> String {
    "$JS.API".to_owned()
}

fn default_columns() -> Vec<Column> {
    Column::ALL.to_vec()
}

fn default_batch_rows() -> usize {
    8192
}

fn default_batch_bytes() -> usize {
    8 * 1024 * 1024
}

fn default_request_rows() -> u64 {
    8192
}

impl RowOptions {
    pub fn from_json(json: &[u8]) -> Result<Self, EngineError> {
        let mut options: Self = serde_json::from_slice(json).map_err(|error| refused(&error))?;
        options.start = options.start.max(1);
        if options.end == 0 {
            options.end = u64::MAX;
        }
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), EngineError> {
        check_name("stream", &self.stream)?;
        check_subject("inbox", &self.inbox)?;
        check_subject("api_prefix", &self.api_prefix)?;
        check_subjects(&self.subjects)?;
        self.shape().check()?;
        check_range(
            "request_rows",
            self.request_rows as usize,
            REQUEST_ROWS_MAX as usize,
        )
    }

    pub fn shape(&self) -> BatchShape {
        BatchShape {
            stream: self.stream.clone(),
            columns: self.columns.clone(),
            decompress: self.decompress,
            bad_payload: self.bad_payload,
            batch_rows: self.batch_rows,
            batch_bytes: self.batch_bytes,
        }
    }
}

/// What to read from files, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileOptions {
    pub stream: String,
    /// What the server says of where the range lies.
    pub pieces: Vec<FilePiece>,
    #[serde(default = "default_columns")]
    pub columns: Vec<Column>,
    #[serde(default)]
    pub subjects: Vec<String>,
    #[serde(default)]
    pub decompress: Compression,
    #[serde(default)]
    pub bad_payload: BadPayload,
    #[serde(default = "default_batch_rows")]
    pub batch_rows: usize,
    #[serde(default = "default_batch_bytes")]
    pub batch_bytes: usize,
}

impl FileOptions {
    pub fn from_json(json: &[u8]) -> Result<Self, EngineError> {
        let options: Self = serde_json::from_slice(json).map_err(|error| refused(&error))?;
        check_name("stream", &options.stream)?;
        check_subjects(&options.subjects)?;
        for piece in &options.pieces {
            let is_possible = piece.from < piece.to && piece.first_sequence <= piece.last_sequence;
            if !is_possible {
                return Err(refused(&"pieces: one of them is empty: use from < to and first_sequence <= last_sequence"));
            }
        }
        options.shape().check()?;
        Ok(options)
    }

    pub fn shape(&self) -> BatchShape {
        BatchShape {
            stream: self.stream.clone(),
            columns: self.columns.clone(),
            decompress: self.decompress,
            bad_payload: self.bad_payload,
            batch_rows: self.batch_rows,
            batch_bytes: self.batch_bytes,
        }
    }
}

/// What batches look like, wherever their rows come from.
#[derive(Debug, Clone)]
pub struct BatchShape {
    pub stream: String,
    pub columns: Vec<Column>,
    pub decompress: Compression,
    pub bad_payload: BadPayload,
    pub batch_rows: usize,
    pub batch_bytes: usize,
}

impl BatchShape {
    fn check(&self) -> Result<(), EngineError> {
        if self.columns.is_empty() {
            return Err(refused(&"columns must name at least one"));
        }
        for (place, column) in self.columns.iter().enumerate() {
            if self.columns[..place].contains(column) {
                return Err(refused(&format!("columns names {} twice", column.name())));
            }
        }
        check_range("batch_rows", self.batch_rows, BATCH_ROWS_MAX)?;
        check_range("batch_bytes", self.batch_bytes, BATCH_BYTES_MAX)
    }
}

/// Where the ids of messages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ids {
    Content,
    Column,
    #[default]
    None,
    /// None needed: the messages are an upload, which is stored once when it is committed.
    Upload,
}

/// Which upload the messages are.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadOptions {
    pub id: String,
    pub query: String,
    pub run: String,
}

/// What to publish, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishOptions {
    pub inbox: String,
    #[serde(default = "default_sid")]
    pub sid: u64,
    #[serde(default)]
    pub subject: String,
    #[serde(default)]
    pub stream: String,
    #[serde(default)]
    pub ids: Ids,
    #[serde(default)]
    pub id_prefix: String,
    #[serde(default)]
    pub upload: UploadOptions,
    /// What the server takes as one message; 0 where that is not known.
    #[serde(default)]
    pub payload_bytes_max: usize,
    #[serde(default = "default_outstanding")]
    pub outstanding_max: usize,
    #[serde(default = "default_outstanding_bytes")]
    pub outstanding_bytes_max: usize,
}

fn default_outstanding() -> usize {
    4096
}

fn default_outstanding_bytes() -> usize {
    8 * 1024 * 1024
}

impl PublishOptions {
    pub fn from_json(json: &[u8]) -> Result<Self, EngineError> {
        let options: Self = serde_json::from_slice(json).map_err(|error| refused(&error))?;
        check_subject("inbox", &options.inbox)?;
        if !options.subject.is_empty() {
            check_subject("subject", &options.subject)?;
        }
        if !options.stream.is_empty() {
            check_name("stream", &options.stream)?;
        }
        let is_prefix = !options.id_prefix.is_empty() && is_one_word(&options.id_prefix);
        if options.ids == Ids::Content && !is_prefix {
            let hint = "ids of content need an id_prefix, such as query-batch-partition";
            return Err(refused(&hint));
        }
        let UploadOptions { id, query, run } = &options.upload;
        if options.ids == Ids::Upload && ![id, query, run].into_iter().all(|name| is_name(name)) {
            let hint =
                "an upload needs an id, a query and a run: letters, digits, '-', '_' and '.'";
            return Err(refused(&hint));
        }
        check_range("outstanding_max", options.outstanding_max, OUTSTANDING_MAX)?;
        check_range(
            "outstanding_bytes_max",
            options.outstanding_bytes_max,
            OUTSTANDING_BYTES_MAX,
        )?;
        Ok(options)
    }
}

fn refused(reason: &dyn std::fmt::Display) -> EngineError {
    EngineError::Options(reason.to_string())
}

/// Whether it can stand in a line of the protocol.
fn is_one_word(text: &str) -> bool {
    text.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}

fn check_name(key: &str, name: &str) -> Result<(), EngineError> {
    let is_name = !name.is_empty() && is_one_word(name) && !name.contains(['.', '*', '>', '/']);
    match is_name {
        true => Ok(()),
        false => Err(refused(&format!("{key}: {name:?} is not a valid name of a stream: use a name without blanks and . * > /"))),
    }
}

fn check_subject(key: &str, text: &str) -> Result<(), EngineError> {
    match subject::is_literal(text.as_bytes()) && is_one_word(text) {
        true => Ok(()),
        false => Err(refused(&format!(
            "{key}: {text:?} must be a subject without wildcards"
        ))),
    }
}

fn check_subjects(subjects: &[String]) -> Result<(), EngineError> {
    if subjects.len() > SUBJECTS_MAX {
        return Err(refused(&format!("subjects may be {SUBJECTS_MAX} at most")));
    }
    for filter in subjects {
        if !subject::is_valid_subscription(filter.as_bytes()) || !is_one_word(filter) {
            return Err(refused(&format!("subjects: {filter:?} is not a valid subject: use tokens that are not empty, and '>' only as the last one")));
        }
    }
    Ok(())
}

fn check_range(key: &str, value: usize, value_max: usize) -> Result<(), EngineError> {
    match (1..=value_max).contains(&value) {
        true => Ok(()),
        false => Err(refused(&format!(
            "{key} must be between 1 and {value_max}, not {value}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = r#"{"stream":"S","inbox":"_INBOX.1","source":"consumer""#;

    #[test]
    fn what_is_not_said_has_its_default() {
        let options = RowOptions::from_json(format!("{ROWS}}}").as_bytes()).unwrap();

        assert_eq!(options.start, 1);
        assert_eq!(options.end, u64::MAX);
        assert_eq!(options.columns, Column::ALL);
        assert_eq!(options.batch_rows, 8192);
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_key() {
        for (more, word) in [
            (r#","columns":["subject","subject"]"#, "subject twice"),
            (r#","columns":[]"#, "columns"),
            (r#","columns":["payload"]"#, "payload"),
            (r#","subjects":["a b"]"#, "subjects"),
            (r#","batch_rows":0"#, "batch_rows"),
            (r#","speed":1"#, "speed"),
            (r#","api_prefix":"a.*""#, "api_prefix"),
        ] {
            let error = RowOptions::from_json(format!("{ROWS}{more}}}").as_bytes()).unwrap_err();

            assert!(error.to_string().contains(word), "{error}");
        }
        let error = PublishOptions::from_json(br#"{"inbox":"a","ids":"content"}"#).unwrap_err();
        assert!(error.to_string().contains("id_prefix"), "{error}");
        let error = PublishOptions::from_json(br#"{"inbox":"a","ids":"upload"}"#).unwrap_err();
        assert!(error.to_string().contains("an upload needs"), "{error}");
    }
}
