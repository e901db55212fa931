//! A service import: requests that are published here go to another account.

use std::sync::Arc;

use super::options::{Responses, ServiceImportOptions};
use super::token_map::TokenMap;
use crate::error::EngineError;
use crate::routing::account::Account;

/// Imports that a request may go through one after the other: a longer way is a mistake of somebody's.
pub const IMPORTS_IN_A_ROW_MAX: usize = 16;

pub struct ServiceImport {
    pub exporter: Arc<Account>,
    pub map: TokenMap,
    pub responses: Responses,
    pub response_timeout_ms: u64,
    pub share: bool,
}

impl ServiceImport {
    pub fn new(
        options: &ServiceImportOptions,
        exporter: Arc<Account>,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            exporter,
            map: TokenMap::new(&options.from, &options.to)?,
            responses: options.responses,
            response_timeout_ms: options.response_timeout_ms,
            share: options.share,
        })
    }
}
