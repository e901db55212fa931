//! Spark's two-phase write: `uploads` holds what the tasks of a query send, as `held_messages`; `requests` commit or abort them, `uploading` stages
//! them together, and `committed_batches` remembers which batches of a query there are.

pub mod committed_batches;
pub mod held_messages;
pub mod requests;
pub mod uploading;
pub mod uploads;
