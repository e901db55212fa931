//! Imports of an account as they are asked for.

use serde::Deserialize;

/// Everything that one account imports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportOptions {
    #[serde(default)]
    pub streams: Vec<StreamImportOptions>,
    #[serde(default)]
    pub services: Vec<ServiceImportOptions>,
}

/// What is published to `from` in that account appears as `to` in this one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamImportOptions {
    pub account: String,
    pub from: String,
    pub to: String,
    /// Traces show what happens to the messages in the importing account.
    #[serde(default)]
    pub allow_trace: bool,
}

/// A request to `from` in this account goes to `to` in that one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceImportOptions {
    pub account: String,
    pub from: String,
    pub to: String,
    /// The subject of the export that it is of.
    #[serde(default)]
    pub export: String,
    pub responses: ResponseType,
    /// How long answers may take; each answer of several starts it again.
    pub response_timeout_ms: u64,
    /// Whether the service learns who asks, or only of which account it is.
    pub share: bool,
    /// Traces show what happens to the requests in the exporting account.
    #[serde(default)]
    pub allow_trace: bool,
    /// How long requests take is published, if the export asks for that.
    #[serde(default)]
    pub latency: Option<LatencyOptions>,
}

/// Where latency events of a service go, and which requests are measured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyOptions {
    pub subject: String,
    /// How many of a hundred requests, besides those whose headers ask for it.
    pub sampling_percent: u8,
}

/// How many answers a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResponseType {
    One,
    /// Any number.
    Stream,
    /// Any number; an empty one is the last.
    Chunked,
}
