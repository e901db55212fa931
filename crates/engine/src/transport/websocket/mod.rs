//! WebSocket: the same sessions over an HTTP connection that was upgraded.
//!
//! `settings` is what is configured; `upgrade` reads a client's HTTP request and answers it, by the rules of `origins`; `request` is the other side of that, towards another server. After that, `frame_reader` turns frames into the
//! bytes of a session, in the buffer they were read to (what must wait does so in a `byte_queue`), and `framing` puts what the outbox sends into frames. `frames` is the format of a frame, and `deflate` the
//! compression of messages.
//!
//! Invariant: everything above this layer sees the bytes of the NATS protocol and nothing else, and no byte before the upgrade was answered.

mod byte_queue;
mod deflate;
pub mod frame_reader;
pub mod frames;
pub mod framing;
pub mod origins;
pub mod request;
pub mod settings;
pub mod upgrade;

pub use frame_reader::WebSocketFrameReader;
pub use framing::Framing;
pub use settings::WebSocketSettings;
