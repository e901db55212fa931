//! Links to other servers, as methods of the engine.

use jetlake_engine::routing::monitoring::leaf_reports;
use pyo3::prelude::*;

use crate::engine::{pair, Engine};

#[pymethods]
impl Engine {
    /// Where other servers connect as leaf nodes; None where they do not.
    #[getter]
    fn leaf_address(&self) -> Option<(String, u16)> {
        self.inner.shared().leaf_address().map(pair)
    }

    fn leaf_links(&self, py: Python<'_>) -> Vec<u8> {
        py.detach(|| leaf_reports::links(self.inner.shared()))
    }

    fn leaf_interest(&self, py: Python<'_>, connection_id: u64) -> Vec<String> {
        py.detach(|| leaf_reports::interest(self.inner.shared(), connection_id))
    }

    fn leaf_remotes(&self, py: Python<'_>) -> Vec<u8> {
        py.detach(|| leaf_reports::remotes(self.inner.shared()))
    }
}
