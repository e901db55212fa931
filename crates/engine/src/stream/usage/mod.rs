//! How much there is: `state_report` of one stream, `figures` of all, `account_usage` of an account, with `shared_segments` counted once; `shares` are
//! what an account may hold of what all have in common.

pub mod account_usage;
pub mod figures;
pub mod shared_segments;
pub mod shares;
pub mod state_report;
