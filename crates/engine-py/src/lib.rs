//! The bridge: the engine as the Python module `jetlake._engine`. It converts and forwards; it decides nothing.
//!
//! Invariant: the GIL is released around every call that may wait.

mod bulk;
mod check;
mod engine;
mod error;
mod events;

use pyo3::prelude::*;

#[pymodule(name = "_engine")]
mod module {
    use super::*;

    #[pymodule_export]
    use super::bulk::{PublishWriter, RowBatch, RowReader, StoreReader};
    #[pymodule_export]
    use super::check::check_store;
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::error::EngineError;
    #[pymodule_export]
    use super::events::{
        ArchiveEvent, AuthenticationRequest, ConnectionEvent, ConsumerEvent, LogLine, Request,
        Stopped,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let profile = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("build_profile", profile)
    }

    /// Runs one load of `jetlake bench`.
    #[pyfunction]
    fn run_load(py: Python<'_>, plan: Vec<u8>) -> PyResult<Vec<u8>> {
        py.detach(|| jetlake_engine::load::run(&plan))
            .map_err(error::to_python)
    }
}
