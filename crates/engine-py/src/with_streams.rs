//! How methods of the engine reach its streams: without the GIL, and with errors as Python knows them.

use std::borrow::Cow;
use std::sync::Arc;

use jetlake_engine::common::error::EngineError;
use jetlake_engine::stream::registry::Streams;
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::error::to_python;
use crate::stored::Json;

impl Engine {
    /// Does something with the streams, without the GIL.
    pub(crate) fn with_streams<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Arc<Streams>) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        py.detach(|| act(self.inner.streams()?)).map_err(to_python)
    }

    /// The same for what comes back as bytes.
    pub(crate) fn json_of_streams(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Arc<Streams>) -> Result<Vec<u8>, EngineError> + Send,
    ) -> PyResult<Json> {
        self.with_streams(py, act).map(Cow::Owned)
    }
}
