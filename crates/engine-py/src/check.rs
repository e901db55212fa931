//! `jetlake check` across the boundary: the folder of a store in, its report as JSON out.

use std::io;
use std::path::PathBuf;

use jetlake_engine::storage::check::check;
use jetlake_engine::storage::disk::file_system::RealFileSystem;
use pyo3::prelude::*;

/// Examines one store without changing it. What `progress` raises, or a signal, ends it.
#[pyfunction]
#[pyo3(signature = (folder, progress=None))]
pub fn check_store(
    py: Python<'_>,
    folder: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut raised = None;
    let report = py.detach(|| {
        check(&RealFileSystem, &folder, &mut |done_bytes, total_bytes| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) => progress.call1(py, (done_bytes, total_bytes)).map(|_| ()),
                    None => Ok(()),
                }
            });
            told.map_err(|error| {
                raised = Some(error);
                io::Error::other("stopped")
            })
        })
    });
    match raised {
        Some(error) => Err(error),
        None => Ok(report?.to_json()),
    }
}
