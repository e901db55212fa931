//! A stream import: what is published in another account, under the subjects it has here.

use std::sync::{Arc, Weak};

use super::token_map::{intersection, TokenMap};
use crate::common::error::EngineError;
use crate::config::imports::StreamImportOptions;
use crate::routing::account::Account;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};

pub struct StreamImport {
    exporter: Arc<Account>,
    importer: Weak<Account>,
    map: Arc<TokenMap>,
    /// The subjects as they are here.
    here: Vec<u8>,
    allow_trace: bool,
}

/// What stands in the exporting account for a subscription of the importing one.
#[derive(Clone)]
pub struct Shadow {
    pub original: Arc<Subscription>,
    /// The account of the original.
    pub account: Weak<Account>,
    pub map: Arc<TokenMap>,
    /// Traces show what happens to the messages in the importing account.
    pub allow_trace: bool,
}

impl StreamImport {
    pub fn new(
        options: &StreamImportOptions,
        importer: &Arc<Account>,
        exporter: Arc<Account>,
    ) -> Result<Self, EngineError> {
        let map = Arc::new(TokenMap::new(&options.from, &options.to)?);
        Ok(Self {
            exporter,
            importer: Arc::downgrade(importer),
            here: map.to_pattern(),
            allow_trace: options.allow_trace,
            map,
        })
    }

    pub fn exporter(&self) -> &Arc<Account> {
        &self.exporter
    }

    /// Whether a subject has the same name here as there.
    pub fn keeps(&self, subject: &[u8]) -> bool {
        let mut here = Vec::new();
        self.map.forward(subject, &mut here) && here == subject
    }

    /// What stands for this subscription in the exporting account; none if it could not get anything from there.
    pub fn shadow(&self, original: &Arc<Subscription>) -> Option<Arc<Subscription>> {
        let wanted = intersection(&original.subject, &self.here)?;
        let mut there = Vec::new();
        if !self.map.backward(&wanted, &mut there) {
            return None;
        }
        let shadow = Shadow {
            original: Arc::clone(original),
            account: Weak::clone(&self.importer),
            map: Arc::clone(&self.map),
            allow_trace: self.allow_trace,
        };
        Some(Arc::new(Subscription::new(
            Receiver::Shadow(Box::new(shadow)),
            &there,
            original.queue.as_deref(),
            &original.sid,
            Restrictions::default(),
        )))
    }
}
