//! What failed on a disk, as whoever asked for it is told.

use std::io;

use crate::error::EngineError;
use crate::storage::message::StoreError;

pub fn store_error(error: &StoreError) -> EngineError {
    EngineError::Store(error.to_string())
}

pub fn disk_error(error: io::Error) -> EngineError {
    let text = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            "the disk is full: free some space and try again".to_owned()
        }
        _ => error.to_string(),
    };
    EngineError::Store(text)
}
