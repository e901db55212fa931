//! A service import: requests that are published here go to another account.

use std::sync::Arc;

use super::token_map::TokenMap;
use crate::common::error::EngineError;
use crate::config::imports::{ResponseType, ServiceImportOptions};
use crate::routing::account::Account;
use crate::routing::latency::{Latency, LatencyQueue};

/// Imports that a request may pass through in a row: a longer chain is a configuration mistake.
pub const IMPORTS_IN_A_ROW_MAX: usize = 16;

/// One export of a service: the index of its account, and its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportIdentity(usize, Arc<str>);

/// How a service answers.
#[derive(Debug, Clone)]
pub struct AnswerTerms {
    pub export: ExportIdentity,
    pub responses: ResponseType,
    pub timeout_ms: u64,
}

pub struct ServiceImport {
    pub exporter: Arc<Account>,
    pub terms: AnswerTerms,
    pub map: TokenMap,
    pub share: bool,
    /// Traces show what happens to the requests in the exporting account.
    pub allow_trace: bool,
    pub latency: Option<Latency>,
}

impl ServiceImport {
    pub fn new(
        options: &ServiceImportOptions,
        exporter: Arc<Account>,
        latencies: &Arc<LatencyQueue>,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            terms: AnswerTerms {
                export: ExportIdentity(exporter.index, options.export.as_str().into()),
                responses: options.responses,
                timeout_ms: options.response_timeout_ms,
            },
            exporter,
            map: TokenMap::new(&options.from, &options.to)?,
            share: options.share,
            allow_trace: options.allow_trace,
            latency: options
                .latency
                .as_ref()
                .map(|wanted| Latency::new(wanted, latencies)),
        })
    }
}
