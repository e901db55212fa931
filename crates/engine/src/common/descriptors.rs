//! File descriptors: how many the process may have, and who gets how many of them.
//!
//! A server that has none left can neither accept nor write. So they are divided once, when the first engine is made: a part for the files of stores, some for
//! everything else, and the rest for clients. Invariant: the parts add up to no more than the limit, so clients alone can never use up what stores need.

use std::sync::OnceLock;

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// The limit is raised no further than this: more files and sockets than that are not served anyway, and some systems have no limit at all.
const LIMIT_MAX: u64 = 1 << 20;

/// Files of stores that are open at a time: this part of all descriptors, within these bounds. Few are enough, since those that nobody uses are closed;
/// many spare opening them again where thousands of streams are busy.
const FILES_PART: usize = 4;
const FILES_MIN: usize = 32;
const FILES_MAX: usize = 65_536;

/// Neither sockets of clients nor files of stores: listeners, polls, logs, pipes, monitoring, folders that are synced, connections to other servers.
const OTHERS_PART: usize = 8;
const OTHERS_MIN: usize = 48;
const OTHERS_MAX: usize = 1_024;

/// However low the limit is, this many clients may try to connect.
const CLIENTS_MIN: usize = 8;

/// One in this many clients may be unauthenticated: beyond that the oldest of them make room.
const UNAUTHENTICATED_PART: usize = 2;

/// How the descriptors of the process are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    pub limit: usize,
    /// Files of stores that are kept open.
    pub files_max: usize,
    /// Connections of clients; the listener waits when there are as many.
    pub clients_max: usize,
    /// Those among them that have not said who they are.
    pub unauthenticated_max: usize,
}

impl Descriptors {
    /// Divides `limit` descriptors.
    fn divide(limit: usize) -> Self {
        let files_max = (limit / FILES_PART).clamp(FILES_MIN, FILES_MAX);
        let others = (limit / OTHERS_PART).clamp(OTHERS_MIN, OTHERS_MAX);
        let clients_max = limit.saturating_sub(files_max + others).max(CLIENTS_MIN);
        Self {
            limit,
            files_max,
            clients_max,
            unauthenticated_max: clients_max.div_ceil(UNAUTHENTICATED_PART),
        }
    }

    /// Those of this process. The first call raises the limit as far as the system lets it.
    pub fn of_process() -> &'static Self {
        static DIVIDED: OnceLock<Descriptors> = OnceLock::new();
        DIVIDED.get_or_init(|| Self::divide(raise_limit()))
    }
}

/// Raises the soft limit to the hard one, as every Go program does; returns what holds then.
fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(LIMIT_MAX, |maximum| maximum.min(LIMIT_MAX));
    let before = current.map_or(LIMIT_MAX, |current| current.min(LIMIT_MAX));
    if wanted <= before {
        return before as usize;
    }
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(wanted),
            maximum,
        },
    );
    match raised {
        Ok(()) => wanted as usize,
        // Some systems allow less than they say; what was there before still holds.
        Err(_) => before as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_add_up_to_no_more_than_the_limit() {
        for limit in [128, 256, 400, 1_024, 4_096, 65_536, 1 << 20] {
            let divided = Descriptors::divide(limit);

            let others = (limit / OTHERS_PART).clamp(OTHERS_MIN, OTHERS_MAX);
            let sum = divided.files_max + divided.clients_max + others;
            assert!(sum <= limit, "{divided:?}");
            assert!(divided.unauthenticated_max <= divided.clients_max);
        }
    }

    #[test]
    fn even_a_tiny_limit_leaves_something_for_everybody() {
        let divided = Descriptors::divide(20);

        assert!(
            divided.files_max > 0 && divided.clients_max > 0 && divided.unauthenticated_max > 0
        );
    }

    #[test]
    fn the_limit_of_the_process_is_the_hard_one() {
        let divided = Descriptors::of_process();

        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let wanted = maximum.map_or(LIMIT_MAX, |maximum| maximum.min(LIMIT_MAX));
        assert!(current.is_none_or(|current| current >= wanted));
        assert_eq!(
            divided.limit as u64,
            current.unwrap_or(LIMIT_MAX).min(LIMIT_MAX)
        );
    }
}
