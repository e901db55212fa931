//! The options of an engine as plain data, and the limits that are not options.
//!
//! - `options` is what the server is started with; `imports` and `mappings` are the parts of an account; `connection_type` is how a client connects.

pub mod connection_type;
pub mod imports;
pub mod mappings;
pub mod options;
