//! What one account sees of another: streams of subjects, and services.
//!
//! - A stream import brings what is published in the exporting account to subscribers here. Each subscription that could get such messages has a *shadow* in
//!   the tree of the exporting account (`stream_import`), which passes them on under the subject they have here.
//! - A service import takes requests that are published here to the exporting account (`service_import`), with a reply subject of that account's own, and brings the
//!   answers back (`replies`).
//!
//! `token_map` is how subjects of the two accounts belong together, and `config::imports` what is asked for. Who may import what is decided where configurations and claims are
//! read. Invariant: a message enters another account only through one of these, and under the subjects that it names.

pub mod replies;
pub mod service_import;
pub mod stream_import;
pub mod token_map;

pub use replies::{PendingReply, Replies};
pub use service_import::ServiceImport;
pub use stream_import::{Shadow, StreamImport};
