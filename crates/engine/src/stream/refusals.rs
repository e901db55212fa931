//! Disk failures, as the errors that a client gets.

use std::io;

use crate::common::error::EngineError;
use crate::storage::disk::failure;
use crate::storage::message::StoreError;

pub fn store_error(error: &StoreError) -> EngineError {
    EngineError::Store(error.to_string())
}

pub fn disk_error(error: io::Error) -> EngineError {
    let text = match failure::refusal(&error) {
        Some(StoreError::Full) => "the disk is full: free some space and try again".to_owned(),
        Some(refusal) => refusal.to_string(),
        None => error.to_string(),
    };
    EngineError::Store(text)
}
