//! The threads behind stores: `scheduler` commits what was staged and notifies its stream, on the threads of `work_pool`.

pub mod scheduler;
pub mod work_pool;
