//! One function from engine errors to the Python exception.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(jetlake._engine, EngineError, PyException);

/// `EngineError(kind, message)`.
pub fn to_python(error: jetlake_engine::common::error::EngineError) -> PyErr {
    EngineError::new_err((error.kind(), error.to_string()))
}
