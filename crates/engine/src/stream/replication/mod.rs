//! Mirrors and sources: messages that come from other streams.
//!
//! - `origin` is where they come from; `origins` finds it: in the same account, in another (through imports: `imported_origins`), behind a link (`linked_origins`), or on another server.
//! - `replicator` is the job of one stream; its `work` gives each origin a turn by its `origin_link`, `batch` takes a few messages at a time, `from_remote` what a `remote`
//!   reader brought. `arrivals` stages them, `positions` remembers how far each origin is and `beginnings` where it has begun, and `followers` are woken for
//!   something new.

pub mod arrivals;
pub mod batch;
pub mod beginnings;
pub mod followers;
pub mod from_remote;
pub mod imported_origins;
pub mod linked_origins;
pub mod origin;
pub mod origin_link;
pub mod origins;
pub mod positions;
pub mod remote;
pub mod replicator;
pub mod work;
