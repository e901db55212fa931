//! What the engine reports to Python, as frozen objects.

use std::borrow::Cow;
use std::sync::Arc;

use jetlake_engine::common::events::Event;
use jetlake_engine::common::permissions::Permissions;
use jetlake_engine::routing::targets::{self, Target};
use pyo3::prelude::*;
use pyo3::IntoPyObjectExt;

use crate::error;

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
    tls: Vec<u8>,
    #[pyo3(get)]
    connection_type: &'static str,
    #[pyo3(get)]
    again: bool,
}

#[pymethods]
impl AuthenticationRequest {
    #[getter]
    fn connect(&self) -> &[u8] {
        &self.connect
    }

    #[getter]
    fn tls(&self) -> &[u8] {
        &self.tls
    }
}

#[pyclass(frozen, module = "jetlake._engine")]
pub struct ConnectionEvent {
    #[pyo3(get)]
    kind: &'static str,
    connection: Vec<u8>,
}

#[pymethods]
impl ConnectionEvent {
    #[getter]
    fn connection(&self) -> &[u8] {
        &self.connection
    }
}

#[pyclass(frozen, module = "jetlake._engine")]
pub struct ArchiveEvent {
    #[pyo3(get)]
    kind: &'static str,
    #[pyo3(get)]
    id: String,
    details: Vec<u8>,
}

#[pymethods]
impl ArchiveEvent {
    #[getter]
    fn details(&self) -> &[u8] {
        &self.details
    }
}

#[pyclass(frozen, get_all, module = "jetlake._engine")]
pub struct ConsumerEvent {
    account: String,
    stream: String,
    name: String,
}

#[pyclass(frozen, module = "jetlake._engine")]
pub struct Request {
    inner: jetlake_engine::common::events::ServiceRequest,
}

#[pymethods]
impl Request {
    #[getter]
    fn service(&self) -> u64 {
        self.inner.service
    }

    #[getter]
    fn connection_id(&self) -> u64 {
        self.inner.connection_id
    }

    #[getter]
    fn account(&self) -> &str {
        &self.inner.account
    }

    #[getter]
    fn subject(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.subject)
    }

    #[getter]
    fn reply(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.reply)
    }

    #[getter]
    fn header(&self) -> &[u8] {
        &self.inner.header
    }

    #[getter]
    fn payload(&self) -> &[u8] {
        &self.inner.payload
    }

    /// Whether the sender might publish to every subject of `pattern` when the request arrived.
    fn may_publish(&self, pattern: &str) -> bool {
        let permissions = self.inner.permissions.as_ref();
        permissions.is_none_or(|permissions| permissions.covers_publish(pattern.as_bytes()))
    }

    /// Whether the server might send to every subject of `pattern` for the sender when the request arrived, for the reason `target`.
    fn may_send_to(&self, target: &str, pattern: &str) -> bool {
        let permissions = self.inner.permissions.as_deref();
        may_send_to(permissions, target, pattern)
    }
}

impl Request {
    pub fn permissions(&self) -> Option<&Arc<Permissions>> {
        self.inner.permissions.as_ref()
    }
}

/// What a user may do, by the same rules as a client.
#[pyclass(frozen, module = "jetlake._engine")]
pub struct Rights {
    inner: Permissions,
}

#[pymethods]
impl Rights {
    #[new]
    fn new(permissions: &[u8]) -> PyResult<Self> {
        let inner = Permissions::from_json(permissions).map_err(error::to_python)?;
        Ok(Self { inner })
    }

    fn may_publish(&self, pattern: &str) -> bool {
        self.inner.covers_publish(pattern.as_bytes())
    }

    fn may_send_to(&self, target: &str, pattern: &str) -> bool {
        may_send_to(Some(&self.inner), target, pattern)
    }
}

/// An unknown target is not allowed.
fn may_send_to(permissions: Option<&Permissions>, target: &str, pattern: &str) -> bool {
    Target::named(target)
        .is_some_and(|target| targets::allows(permissions, target, pattern.as_bytes()))
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
            tls: request.tls,
            connection_type: request.connection_type,
            again: request.again,
        }
        .into_py_any(py),
        Event::Connection(event) => ConnectionEvent {
            kind: event.kind.name(),
            connection: event.connection,
        }
        .into_py_any(py),
        Event::Archive(event) => ArchiveEvent {
            kind: event.kind.name(),
            id: event.id,
            details: event.details,
        }
        .into_py_any(py),
        Event::Consumer {
            account,
            stream,
            name,
        } => ConsumerEvent {
            account,
            stream,
            name,
        }
        .into_py_any(py),
        Event::Request(inner) => Request { inner }.into_py_any(py),
        Event::Stopped { failure } => Stopped { failure }.into_py_any(py),
    }
}
