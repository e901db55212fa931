//! Mappings of an account as they are asked for.

use serde::Deserialize;

/// A mapping as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingOptions {
    pub source: String,
    pub destinations: Vec<MappingDestination>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingDestination {
    pub subject: String,
    pub weight_percent: u8,
}
