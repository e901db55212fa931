//! The options of an engine as plain data, and the limits that are not options.
//!
//! - `options` is what the server is started with; `imports` and `mappings` are the parts of an account; `connection_type` is how a client connects;
//!   `leaf` is what links to other servers are like, and `remote_tls` how one is connected to.

pub mod connection_type;
pub mod imports;
pub mod leaf;
pub mod mappings;
pub mod options;
pub mod remote_tls;
