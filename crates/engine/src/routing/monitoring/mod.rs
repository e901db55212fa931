//! What the monitoring pages show: `statistics` in sums, `reports` one by one, `leaf_reports` links to other servers, `closed` the connections that ended last; `system_events` tells the
//! system account who comes and goes.

pub mod closed;
pub mod leaf_reports;
pub mod reports;
pub mod statistics;
pub mod system_events;
