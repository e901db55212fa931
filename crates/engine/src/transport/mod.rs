//! How bytes get to a client and from it.
//!
//! - `outbox` is what waits to be written to one socket, and who may write it; `socket` is the system calls.
//! - `tls` and `websocket` are between the two where that is asked for, and `s2_link` where a link to another server is compressed.

pub mod outbox;
pub mod s2_link;
pub mod socket;
pub mod tls;
pub mod websocket;
