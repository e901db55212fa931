//! Streams: what happens to a message between the router and the store.
//!
//! - `registry` has all streams of a server, on disk in `folders` by their `definition`; `stream` is one of them, with its `settings`; `refusals` say what failed on a disk.
//! - `ingest` takes a publish in: checked against a `staged_view`, `admitted`, staged, and noted as `pending` until it is committed and answered; `loading` reads what some of them have to wait for.
//!   `atomic_batches` and `batch_commit`, `fast_batches` and `fast_publish` are the two kinds of batches; `scheduling` publishes what `schedules` says is due;
//!   `expiring` removes what has expired, and `delete_marker` stands for it; `republish` sends on what was stored.
//! - `reads` answers `direct_get` and, through `api`, `message_get`; `state_report` says what there is, `figures` the same of all for monitoring, and `account_usage` how much of it there may be; `shared_segments` are counted once,
//!   and `shares` are what an account may hold of what all have in common.
//! - `publish_headers` are the headers of a publish that mean something to a stream; `time_to_live` is one of them. `trusted_headers` are believed, and `stored_headers` takes
//!   those out that a publisher has set itself.
//! - `publish_checks` decides whether a message may be stored, by the stream's `settings`; `duplicates` remembers message ids for a while.
//! - `acknowledgement` is the answer to a publish, as bytes; `answers` sends them when a commit is done; `dialect` says it as the first releases did.
//! - `untaken` holds messages that no stream takes, until Python has made one of a template.
//! - `counter` adds up; `schedule`, with `schedule_cron` and `schedule_checks`, says when a message is due.
//! - `origin` is where a mirror or a stream with sources gets its messages; `inflow` brings them, `inflow_work` in runs, `inflow_batch` a few at a time, `inflow_remote`
//!   what comes from another server; `neighbours` says where an origin is, with `imported_origins`;
//!   `arrivals` takes them in; `origin_positions` remembers how far it is, and `followers` who is to hear of something new.
//! - `consuming` is what it does for its consumers, `removing` takes many messages out at once, `consumer_registry` how Python's decisions reach them; `dead_letters` are what they give up; `receipts` tell who inside the server hears that a message is stored.
//! - `snapshot` sends a stream as an `archive` in `s2_frames`, `restore` takes one back through `archive_import`; `archives` keeps those under way;
//!   `legacy_archive` reads those that nats-server made before 2.15.
//! - `uploads` holds what the tasks of a query send, `uploading` stages it together when `upload_requests` are told to, and `committed_batches` remembers which
//!   batches of a query there are; `held_messages` are what waits in an upload or an atomic batch, `remembered` is what a stream keeps beside its messages.
//! - `scan` sends a range as Arrow, as far as its reader's `credits` go; `scans` keeps those under way and plans them.

pub mod account_usage;
pub mod acknowledgement;
pub mod admitted;
pub mod answers;
pub mod api;
pub mod archive;
pub mod archive_import;
pub mod archives;
pub mod arrivals;
pub mod atomic_batches;
pub mod batch_advisory;
pub mod batch_commit;
pub mod committed_batches;
pub mod consumer_registry;
pub mod consuming;
pub mod counter;
pub mod credits;
pub mod dead_letters;
pub mod definition;
pub mod delete_marker;
pub mod dialect;
pub mod direct_get;
pub mod duplicates;
mod expiring;
pub mod fast_batches;
pub mod fast_publish;
pub mod figures;
pub mod folders;
pub mod followers;
pub mod get_request;
pub mod held_messages;
pub mod imported_origins;
pub mod inflow;
pub mod inflow_batch;
pub mod inflow_remote;
pub mod inflow_work;
pub mod ingest;
pub mod legacy_archive;
pub mod loading;
pub mod message_get;
pub mod moment;
pub mod neighbours;
pub mod opening;
pub mod origin;
pub mod origin_positions;
pub mod pending;
pub mod publish_checks;
pub mod publish_headers;
pub mod reads;
pub mod receipts;
mod refusals;
pub mod registry;
pub mod remembered;
pub mod removing;
pub mod republish;
pub mod restore;
pub mod s2_frames;
pub mod scan;
pub mod scans;
pub mod schedule;
pub mod schedule_checks;
pub mod schedule_cron;
pub mod schedules;
pub mod scheduling;
mod sender_rights;
pub mod settings;
pub mod shared_segments;
pub mod shares;
pub mod snapshot;
pub mod staged_view;
pub mod state_report;
pub mod stored_headers;
#[allow(clippy::module_inception, reason = "one noun, one module")]
pub mod stream;
pub mod stream_options;
pub mod ticker;
pub mod time_to_live;
mod tracing;
pub mod trusted_headers;
mod turns;
pub mod untaken;
mod upload_requests;
pub mod uploading;
pub mod uploads;
