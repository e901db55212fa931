//! What a failed call to a disk means for the writer: try again, make room, or stop trusting the disk. The one place
//! that decides it.
//!
//! Invariant: only an error that concerns the disk itself makes a store read-only. A process without descriptors or
//! memory, an interrupted call and a full disk do not: the write is refused, and the next one is tried.

use std::io;
use std::sync::Arc;

use crate::storage::message::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFailure {
    /// There is no room, until some is made.
    Full,
    /// The process or the system lacks something for the moment.
    Temporary,
    /// Nothing is certain about what would be written now.
    Broken,
}

impl DiskFailure {
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Self::Full,
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR | libc::EAGAIN) => {
                Self::Temporary
            }
            _ => Self::Broken,
        }
    }
}

/// The error for the writer if the store continues; `None` if the disk cannot be trusted.
pub fn refusal(error: &io::Error) -> Option<StoreError> {
    match DiskFailure::of(error) {
        DiskFailure::Full => Some(StoreError::Full),
        DiskFailure::Temporary => {
            let code = error.raw_os_error().unwrap_or_default();
            let cause = io::Error::from_raw_os_error(code);
            Some(StoreError::Temporary(Arc::new(cause)))
        }
        DiskFailure::Broken => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_something_about_the_disk_is_a_broken_one() {
        let of = |code| DiskFailure::of(&io::Error::from_raw_os_error(code));

        for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EINTR] {
            assert_eq!(of(code), DiskFailure::Temporary, "{code}");
        }
        for code in [libc::ENOSPC, libc::EDQUOT] {
            assert_eq!(of(code), DiskFailure::Full, "{code}");
        }
        for code in [libc::EIO, libc::EROFS, libc::ENODEV, libc::EBADF] {
            assert_eq!(of(code), DiskFailure::Broken, "{code}");
        }
        assert_eq!(DiskFailure::of(&io::Error::other("x")), DiskFailure::Broken);
    }
}
