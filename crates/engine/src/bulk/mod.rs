//! Rows in bulk, for those who treat a stream as a table: bytes of a server become Arrow, and Arrow becomes publishes.
//!
//! Nothing in here owns a socket: the caller connects, reads and writes, and these parts say what the bytes mean and
//! what to send.
//!
//! # Layout
//! - `columns` gathers messages into Arrow arrays; `schema` says which columns there are; `header_block` reads a message's headers.
//! - `batches` cuts rows into batches of a size.
//! - `rows` is a client's reading of one range: `deliveries` by a consumer, `direct_gets` by requests for batches, by the server's own `scans`,
//!   all over `frames`.
//! - `files` reads a range beside its server, from the server's files.
//! - `decompress` opens payloads that were stored compressed.
//! - `publishes` is a client's publishing of rows; `publish_columns` are the rows as Arrow has them; `content_ids` makes their ids.
//! - `options` is what a caller may ask for, with the limits.

pub mod batches;
pub mod columns;
pub mod content_ids;
pub mod decompress;
pub mod deliveries;
pub mod direct_gets;
pub mod files;
pub mod frames;
pub mod header_block;
pub mod options;
pub mod publish_columns;
pub mod publishes;
pub mod rows;
pub mod scans;
pub mod schema;
