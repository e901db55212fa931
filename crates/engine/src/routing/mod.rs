//! Who gets a message: accounts, their subscriptions, and the router that finds the receivers.
//!
//! - `shared` is what all threads share: options, accounts, clients. An `account` is one subject space: a `tree` of `subscription`s, with `mappings`,
//!   and `imports` from other accounts, to which `onward` sends; an `envelope` holds headers that a message gets on its way.
//! - `router` takes a publish of a `publisher` to its receivers, found in a `cache` or in the tree; `staging` gathers what one read delivers, for each receiver; a
//!   `sink` is a receiver inside the server, such as a stream.
//! - `clients` are connections as other parts see them.
//! - `leaf` are links to other servers.
//! - `sender` publishes for the server itself, and `services` for Python; `own_requests` are those that the server asks itself.
//! - `responses` are the replies that a client may send without a permission of its own, `targets` the subjects that a user may have the server send
//!   to.
//! - `subject_transform` is what a subject becomes. `message_trace` tells a publisher that asks where its message goes, `traced_delivery` takes it there; `operation_log` is the lines of
//!   `-V`; `monitoring` is what the monitoring pages show.

pub mod account;
pub mod cache;
pub mod client_information;
pub mod clients;
mod envelope;
pub mod imports;
pub mod latency;
pub mod leaf;
pub mod mappings;
pub mod message_trace;
pub mod monitoring;
pub mod onward;
pub mod operation_log;
pub mod own_requests;
pub mod publisher;
pub mod responses;
pub mod router;
pub mod sender;
pub mod services;
pub mod shared;
pub mod sink;
pub mod staging;
pub mod subject_transform;
pub mod subscription;
pub mod targets;
mod traced_delivery;
pub mod tree;
