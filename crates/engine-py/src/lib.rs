//! The bridge: the engine as the Python module `jetlake._engine`. It converts and forwards; it decides nothing.
//!
//! Invariant: the GIL is released around every call that may wait.

mod bulk;
mod check;
mod engine;
mod error;
mod events;
mod leaf;
mod stored;
mod with_streams;

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
        Rights, Stopped,
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

    /// Refuses options that an engine could not start with; the second are those of the store, or empty.
    #[pyfunction]
    fn check_options(options: Vec<u8>, remotes: Vec<u8>) -> PyResult<()> {
        jetlake_engine::config::options::Options::from_json(&options)
            .and_then(|options| jetlake_engine::engine::Engine::check(&options))
            .and_then(|()| {
                jetlake_engine::stream::replication::remote::remotes::Remotes::check(&remotes)
            })
            .map_err(error::to_python)
    }

    /// What clients may send to the engine itself, as JSON.
    #[pyfunction]
    fn own_requests() -> Vec<u8> {
        jetlake_engine::routing::own_requests::as_json()
    }

    /// Runs one load of `jetlake bench`.
    #[pyfunction]
    fn run_load(py: Python<'_>, plan: Vec<u8>) -> PyResult<Vec<u8>> {
        py.detach(|| jetlake_engine::load::run(&plan))
            .map_err(error::to_python)
    }
}
