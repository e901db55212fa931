//! Who gets a message: subjects, the tree of subscriptions of an account, and the router that walks from one to the other.
//!
//! `subject_transform` is what a subject becomes; `mappings` are those of an account, for everything its clients publish; `imports` is what one account sees of another, and
//! `latency` how long its requests take.

pub mod account;
pub mod cache;
pub mod client_information;
pub mod imports;
pub mod latency;
pub mod mappings;
pub mod onward;
pub mod own_requests;
pub mod permissions;
pub mod responses;
pub mod router;
pub mod sink;
pub mod subject;
pub mod subject_transform;
pub mod subscription;
pub mod targets;
pub mod tree;
