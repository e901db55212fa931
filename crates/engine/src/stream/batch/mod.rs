//! Batches of publishes: `atomic_batches` are stored together or not at all, by `commit`; `fast_batches` are acknowledged now and then, as
//! `fast_publish` takes them in. `advisory` reports those that were given up.

pub mod advisory;
pub mod atomic_batches;
pub mod commit;
pub mod fast_batches;
pub mod fast_publish;
