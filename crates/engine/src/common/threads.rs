//! The threads of the engine, and the only way to start one.
//!
//! A thread that panics stops the engine with the reason: its work is no longer done, and a server must not look alive
//! without it. `tests/style` checks that no thread is started in another way.

use std::any::Any;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::events::Events;

/// Starts a thread. When `work` panics, or returns a reason why it cannot go on, the engine has failed.
pub fn spawn<Work>(events: &Arc<Events>, name: &str, work: Work) -> io::Result<JoinHandle<()>>
where
    Work: FnOnce() -> Result<(), String> + Send + 'static,
{
    let thread = name.to_owned();
    let events = Arc::clone(events);
    Builder::new().name(name.to_owned()).spawn(move || {
        let failure = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => return,
            Ok(Err(reason)) => reason,
            Err(panic) => text_of(&*panic),
        };
        events.fail(format!("the thread {thread} broke off: {failure}"));
    })
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "for a reason that is not a text".to_owned())
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
