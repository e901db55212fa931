//! Who gets a message: subjects, the tree of subscriptions of an account, and the router that walks from one to the other.

pub mod account;
pub mod cache;
pub mod own_requests;
pub mod permissions;
pub mod responses;
pub mod router;
pub mod sink;
pub mod subject;
pub mod subscription;
pub mod targets;
pub mod tree;
