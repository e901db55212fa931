//! Links to other servers, as the router sees them: what the other side wants is a subscription here, and what this side
//! wants is announced to it.
//!
//! - `link` is one link: its role, what may pass, and what was announced to it of this side's interest (`interest`).
//! - `targets` gathers the links that one message goes to, because each gets it once, with all queue groups it is for.
//! - `links` are all of them, for monitoring, and `remote` the state of one server to connect to.
//! - `reporting` is what others learn about links.

pub mod interest;
pub mod link;
pub mod links;
pub mod remote;
pub mod reporting;
pub mod targets;

pub use link::{LeafLink, LeafReceiver, LinkRules, LinkTraits, LinkedPublish};
pub use links::LeafLinks;
pub use remote::LeafRemote;
