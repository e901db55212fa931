//! Rows in bulk across the boundary: bytes and Arrow arrays, which are handed over without a copy.

use std::borrow::Cow;

use arrow_array::ffi::{from_ffi, to_ffi, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, RecordBatch, StructArray};
use jetlake_engine::bulk::{files, publishes, rows};
use jetlake_engine::common::error::EngineError;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::to_python;

/// As the interface of Arrow names its capsules.
const SCHEMA_NAME: &std::ffi::CStr = c"arrow_schema";
const ARRAY_NAME: &std::ffi::CStr = c"arrow_array";

#[pyclass(frozen, module = "jetlake._engine")]
pub struct RowBatch {
    batch: RecordBatch,
}

#[pymethods]
impl RowBatch {
    #[getter]
    fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn size_bytes(&self) -> usize {
        self.batch.get_array_memory_size()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // Producers may hand over what they have, and the receiver looks at the schema anyway.
        drop(requested_schema);
        let array = StructArray::from(self.batch.clone());
        let (array, schema) = to_ffi(&array.to_data())
            .map_err(|error| to_python(EngineError::Data(error.to_string())))?;
        Ok((
            PyCapsule::new_with_value(py, schema, SCHEMA_NAME)?,
            PyCapsule::new_with_value(py, array, ARRAY_NAME)?,
        ))
    }
}

fn to_batches(batches: Vec<RecordBatch>) -> Vec<RowBatch> {
    batches
        .into_iter()
        .map(|batch| RowBatch { batch })
        .collect()
}

#[pyclass(module = "jetlake._engine")]
pub struct RowReader {
    inner: rows::RowReader,
}

#[pymethods]
impl RowReader {
    #[new]
    fn new(options: Vec<u8>) -> PyResult<Self> {
        let inner = rows::RowReader::new(&options).map_err(to_python)?;
        Ok(Self { inner })
    }

    fn feed(&mut self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Vec<RowBatch>> {
        let data = bytes_of(py, data)?;
        py.detach(|| self.inner.feed(&data))
            .map(to_batches)
            .map_err(to_python)
    }

    fn flush(&mut self, py: Python<'_>) -> PyResult<Vec<RowBatch>> {
        py.detach(|| self.inner.flush())
            .map(to_batches)
            .map_err(to_python)
    }

    fn stop(&mut self) {
        self.inner.stop();
    }

    #[pyo3(name = "to_send")]
    fn take_outgoing(&mut self) -> Cow<'static, [u8]> {
        Cow::Owned(self.inner.to_send())
    }

    #[getter]
    fn finished(&self) -> bool {
        self.inner.is_finished()
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.inner.batches().rows
    }

    #[getter]
    fn first_sequence(&self) -> u64 {
        self.inner.batches().first_sequence
    }

    #[getter]
    fn last_sequence(&self) -> u64 {
        self.inner.batches().last_sequence
    }
}

#[pyclass(module = "jetlake._engine")]
pub struct StoreReader {
    inner: files::StoreReader,
}

#[pymethods]
impl StoreReader {
    #[new]
    fn new(options: Vec<u8>) -> PyResult<Self> {
        let inner = files::StoreReader::new(&options).map_err(to_python)?;
        Ok(Self { inner })
    }

    fn read(&mut self, py: Python<'_>) -> PyResult<Vec<RowBatch>> {
        py.detach(|| self.inner.read())
            .map(to_batches)
            .map_err(to_python)
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.inner.batches().rows
    }

    #[getter]
    fn first_sequence(&self) -> u64 {
        self.inner.batches().first_sequence
    }

    #[getter]
    fn last_sequence(&self) -> u64 {
        self.inner.batches().last_sequence
    }
}

#[pyclass(module = "jetlake._engine")]
pub struct PublishWriter {
    inner: publishes::PublishWriter,
}

#[pymethods]
impl PublishWriter {
    #[new]
    fn new(options: Vec<u8>) -> PyResult<Self> {
        let inner = publishes::PublishWriter::new(&options).map_err(to_python)?;
        Ok(Self { inner })
    }

    fn add(&mut self, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let batch = batch_of(batch)?;
        self.inner.add(&batch).map_err(to_python)
    }

    fn end(&mut self) -> PyResult<()> {
        self.inner.end().map_err(to_python)
    }

    #[pyo3(name = "to_send")]
    fn take_outgoing(&mut self, py: Python<'_>) -> PyResult<Cow<'static, [u8]>> {
        py.detach(|| self.inner.to_send())
            .map(Cow::Owned)
            .map_err(to_python)
    }

    fn feed(&mut self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = bytes_of(py, data)?;
        py.detach(|| self.inner.feed(&data)).map_err(to_python)
    }

    #[getter]
    fn waiting(&self) -> usize {
        self.inner.waiting()
    }

    #[getter]
    fn outstanding(&self) -> usize {
        self.inner.outstanding()
    }

    #[getter]
    fn stored(&self) -> u64 {
        self.inner.stored()
    }

    #[getter]
    fn duplicates(&self) -> u64 {
        self.inner.duplicates()
    }
}

/// The bytes of an object: `bytes` where they are, others copied, as they may change while the GIL is released.
fn bytes_of<'a>(py: Python<'_>, data: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = data.extract::<&[u8]>() {
        return Ok(Cow::Borrowed(bytes));
    }
    let buffer = PyBuffer::<u8>::get(data)?;
    buffer.to_vec(py).map(Cow::Owned)
}

/// Converts rows that another library made.
fn batch_of(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let Ok(method) = batch.getattr("__arrow_c_array__") else {
        return Err(PyTypeError::new_err(
            "rows are given as a batch of pyarrow, or something else with __arrow_c_array__",
        ));
    };
    let capsules = method.call0()?.cast_into::<PyTuple>()?;
    let schema = capsules.get_item(0)?.cast_into::<PyCapsule>()?;
    let array = capsules.get_item(1)?.cast_into::<PyCapsule>()?;
    let schema_pointer = schema.pointer_checked(Some(SCHEMA_NAME))?;
    let array_pointer = array.pointer_checked(Some(ARRAY_NAME))?;
    // SAFETY: a capsule of this name holds such a structure, which is ours to move out of; an empty one is left behind, and the schema lives
    // as long as its capsule, beyond this call.
    let imported = unsafe {
        let array = FFI_ArrowArray::from_raw(array_pointer.as_ptr().cast::<FFI_ArrowArray>());
        from_ffi(array, schema_pointer.cast::<FFI_ArrowSchema>().as_ref())
    };
    let mut data = imported.map_err(|error| to_python(EngineError::Data(error.to_string())))?;
    data.align_buffers();
    if !matches!(data.data_type(), arrow_schema::DataType::Struct(_)) || data.null_count() > 0 {
        return Err(PyTypeError::new_err(
            "rows are given as a batch, not as an array",
        ));
    }
    Ok(RecordBatch::from(StructArray::from(data)))
}
