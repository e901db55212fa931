//! What the engine tells Python, as frozen objects.

use jetlake_engine::events::Event;
use pyo3::prelude::*;
use pyo3::IntoPyObjectExt;

#[pyclass(frozen, get_all, module = "jetlake._engine")]
pub struct LogLine {
    level: &'static str,
    text: String,
}

#[pyclass(frozen, module = "jetlake._engine")]
pub struct AuthenticationRequest {
    #[pyo3(get)]
    connection_id: u64,
    connect: Vec<u8>,
    #[pyo3(get)]
    nonce: String,
    #[pyo3(get)]
    remote_address: String,
}

#[pymethods]
impl AuthenticationRequest {
    #[getter]
    fn connect(&self) -> &[u8] {
        &self.connect
    }
}

#[pyclass(frozen, get_all, module = "jetlake._engine")]
pub struct Stopped {
    failure: String,
}

pub fn to_python(py: Python<'_>, event: Event) -> PyResult<Py<PyAny>> {
    match event {
        Event::Log { level, text } => LogLine {
            level: level.name(),
            text,
        }
        .into_py_any(py),
        Event::Authenticate(request) => AuthenticationRequest {
            connection_id: request.connection_id,
            connect: request.connect,
            nonce: request.nonce,
            remote_address: request.remote_address,
        }
        .into_py_any(py),
        Event::Stopped { failure } => Stopped { failure }.into_py_any(py),
    }
}
