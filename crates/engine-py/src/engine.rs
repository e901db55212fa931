//! The engine as a Python class.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use jetlake_engine::common::error::EngineError;
use jetlake_engine::config::options::Options;
use jetlake_engine::routing::clients::mailbox::{RefusalCause, Verdict};
use jetlake_engine::routing::monitoring::{reports, statistics};
use jetlake_engine::routing::services::ServiceMessage;
use jetlake_engine::storage::message::Purge;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::events::{self, Request};
use crate::stored::{self, Json, StoredMessage, StoredStream};

#[pyclass(frozen, module = "jetlake._engine")]
pub struct Engine {
    pub(crate) inner: jetlake_engine::engine::Engine,
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (options, listener=None))]
    fn new(py: Python<'_>, options: Vec<u8>, listener: Option<i32>) -> PyResult<Self> {
        // SAFETY: the caller hands over a socket that it has detached, as the stub says; nobody else closes it.
        let listener = listener.map(|listener| unsafe { OwnedFd::from_raw_fd(listener) });
        let inner = py
            .detach(|| {
                let options = Options::from_json(&options)?;
                jetlake_engine::engine::Engine::listening(options, listener)
            })
            .map_err(to_python)?;
        Ok(Self { inner })
    }

    #[getter]
    fn server_seed(&self) -> Cow<'_, [u8]> {
        self.inner.server_seed().into()
    }

    #[getter]
    fn server_id(&self) -> &str {
        self.inner.server_id()
    }

    #[getter]
    fn address(&self) -> (String, u16) {
        pair(self.inner.address())
    }

    /// Where clients reach it by WebSocket; None where they do not.
    #[getter]
    fn websocket_address(&self) -> Option<(String, u16)> {
        self.inner.websocket_address().map(pair)
    }

    fn start(&self) -> PyResult<()> {
        self.inner.start().map_err(to_python)
    }

    fn next_events(
        &self,
        py: Python<'_>,
        count_max: usize,
        timeout_ms: u64,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let timeout = Duration::from_millis(timeout_ms);
        py.detach(|| self.inner.shared().events.next(count_max, timeout))
            .into_iter()
            .map(|event| events::to_python(py, event))
            .collect()
    }

    fn admit(&self, connection_id: u64, verdict: Vec<u8>) -> PyResult<bool> {
        let verdict = Verdict::from_json(&verdict)
            .map_err(|error| to_python(EngineError::Options(error.to_string())))?;
        Ok(self.inner.decide(connection_id, verdict))
    }

    #[pyo3(signature = (connection_id, cause = ""))]
    fn refuse(&self, connection_id: u64, cause: &str) -> PyResult<bool> {
        let cause = RefusalCause::read(cause).map_err(to_python)?;
        Ok(self.inner.decide(connection_id, Verdict::Refuse(cause)))
    }

    /// The IP address that a connection comes from; None when it has gone.
    fn address_of(&self, connection_id: u64) -> Option<String> {
        let connection = self.inner.shared().connection(connection_id)?;
        Some(connection.remote_address.ip().to_string())
    }

    fn statistics(&self, py: Python<'_>) -> Vec<u8> {
        py.detach(|| statistics::statistics(self.inner.shared()))
    }

    fn connections(&self, py: Python<'_>) -> Vec<u8> {
        py.detach(|| reports::connections(self.inner.shared()))
    }

    fn connection(&self, py: Python<'_>, connection_id: u64) -> Option<Vec<u8>> {
        py.detach(|| reports::connection(self.inner.shared(), connection_id))
    }

    fn closed_connections(&self, py: Python<'_>) -> Vec<u8> {
        py.detach(|| reports::closed_connections(self.inner.shared()))
    }

    fn subscriptions(&self, py: Python<'_>, query: Vec<u8>) -> PyResult<Vec<u8>> {
        py.detach(|| reports::subscriptions(self.inner.shared(), &query))
            .map_err(to_python)
    }

    fn set_log_levels(&self, debug: bool, trace: bool) {
        self.inner.shared().events.set_levels(debug, trace);
    }

    fn reload(&self, options: Vec<u8>) -> PyResult<()> {
        Options::from_json(&options)
            .and_then(|options| self.inner.reload(options))
            .map_err(to_python)
    }

    #[pyo3(signature = (account = None))]
    fn reauthenticate(&self, account: Option<&str>) {
        self.inner.reauthenticate(account);
    }

    #[pyo3(signature = (account, subject, queue = None))]
    fn subscribe(&self, account: &str, subject: &str, queue: Option<&str>) -> PyResult<u64> {
        self.inner
            .services()
            .subscribe(account, subject.as_bytes(), queue.map(str::as_bytes))
            .map_err(to_python)
    }

    fn subscribe_api(&self, account: &str, subject: &str) -> PyResult<u64> {
        self.inner
            .subscribe_api(account, subject.as_bytes())
            .map_err(to_python)
    }

    fn subscribe_untaken(&self, account: &str, subject: &str) -> PyResult<u64> {
        let (streams, services) = (self.inner.streams(), self.inner.services());
        streams
            .and_then(|streams| streams.subscribe_untaken(services, account, subject.as_bytes()))
            .map_err(to_python)
    }

    fn refuse_untaken(
        &self,
        py: Python<'_>,
        account: &str,
        subject: &str,
        text: &str,
    ) -> PyResult<()> {
        self.with_streams(py, |streams| {
            streams.refuse_untaken(account, subject.as_bytes(), text);
            Ok(())
        })
    }

    fn unsubscribe(&self, service: u64) -> bool {
        self.inner.services().unsubscribe(service)
    }

    fn has_interest(&self, account: &str, subject: &str) -> bool {
        let services = self.inner.services();
        services.has_interest(account, subject.as_bytes())
    }

    #[pyo3(signature = (account, subject, payload, reply = None, header = None, sender = None))]
    #[allow(clippy::too_many_arguments)]
    fn publish(
        &self,
        py: Python<'_>,
        account: &str,
        subject: &str,
        payload: &[u8],
        reply: Option<&str>,
        header: Option<&[u8]>,
        sender: Option<&Request>,
    ) -> PyResult<u32> {
        let message = ServiceMessage {
            account,
            subject: subject.as_bytes(),
            reply: reply.map(str::as_bytes),
            header: header.unwrap_or_default(),
            payload,
            permissions: sender.and_then(Request::permissions),
        };
        py.detach(|| self.inner.services().publish(&message))
            .map_err(to_python)
    }

    fn open_streams(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        options: Vec<u8>,
    ) -> PyResult<(Vec<StoredStream>, Vec<String>)> {
        let (stored, findings) = py
            .detach(|| self.inner.serve_streams(&folder, &options)?.stored())
            .map_err(to_python)?;
        Ok((stored::streams(stored), findings))
    }

    fn create_stream(&self, py: Python<'_>, account: &str, definition: &[u8]) -> PyResult<()> {
        self.with_streams(py, |streams| streams.create(account, definition))
    }

    fn fork_stream(
        &self,
        py: Python<'_>,
        account: &str,
        origin: &str,
        last_sequence: u64,
        definition: &[u8],
    ) -> PyResult<()> {
        self.with_streams(py, |streams| {
            streams.fork(account, origin, last_sequence, definition)
        })
    }

    fn open_stream(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        definition: &[u8],
    ) -> PyResult<Vec<String>> {
        self.with_streams(py, |streams| streams.open(account, name, definition))
    }

    fn update_stream(&self, py: Python<'_>, account: &str, definition: &[u8]) -> PyResult<()> {
        self.with_streams(py, |streams| streams.update(account, definition))
    }

    fn delete_stream(&self, py: Python<'_>, account: &str, name: &str) -> PyResult<()> {
        self.with_streams(py, |streams| streams.delete(account, name))
    }

    fn stream_state(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        query: &[u8],
    ) -> PyResult<Json> {
        self.json_of_streams(py, |streams| streams.state(account, name, query))
    }

    #[pyo3(signature = (account, name, subject, below_sequence, keep))]
    fn purge_stream(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        subject: Option<&str>,
        below_sequence: u64,
        keep: u64,
    ) -> PyResult<u64> {
        let purge = Purge {
            filter: subject.map(|subject| subject.as_bytes().to_vec()),
            below_sequence: (below_sequence > 0).then_some(below_sequence),
            keep,
        };
        self.with_streams(py, |streams| streams.purge(account, name, &purge))
    }

    fn limit_account(
        &self,
        account: &str,
        memory_bytes_max: i64,
        storage_bytes_max: i64,
    ) -> PyResult<()> {
        let streams = self.inner.streams().map_err(to_python)?;
        let usage = streams.usage(account);
        usage.limit(memory_bytes_max, storage_bytes_max);
        Ok(())
    }

    fn message_misses(&self, account: &str) -> PyResult<u64> {
        let streams = self.inner.streams().map_err(to_python)?;
        Ok(streams.usage(account).misses())
    }

    fn delete_message(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        sequence: u64,
        erase: bool,
    ) -> PyResult<bool> {
        self.with_streams(py, |streams| {
            streams.delete_message(account, name, sequence, erase)
        })
    }

    fn stored_message(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        sequence: u64,
    ) -> PyResult<Option<StoredMessage>> {
        let found = self.with_streams(py, |streams| {
            streams.stored_message(account, name, sequence)
        });
        Ok(found?.map(|message| stored::message(&message)))
    }

    fn plan_scan(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        request: &[u8],
    ) -> PyResult<Json> {
        self.json_of_streams(py, |streams| streams.plan_scan(account, name, request))
    }

    fn scan_files(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        request: &[u8],
    ) -> PyResult<Json> {
        self.json_of_streams(py, |streams| streams.scan_files(account, name, request))
    }

    fn start_scan(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        request: &[u8],
    ) -> PyResult<()> {
        self.with_streams(py, |streams| streams.start_scan(account, name, request))
    }

    fn begin_snapshot(
        &self,
        py: Python<'_>,
        account: &str,
        name: &str,
        request: &[u8],
    ) -> PyResult<()> {
        self.with_streams(py, |streams| streams.begin_snapshot(account, name, request))
    }

    fn add_to_snapshot(&self, py: Python<'_>, snapshot_id: &str, consumers: &[u8]) -> PyResult<()> {
        self.with_streams(py, |streams| {
            streams.add_to_snapshot(snapshot_id, consumers)
        })
    }

    fn send_snapshot(&self, py: Python<'_>, snapshot_id: &str) -> PyResult<()> {
        self.with_streams(py, |streams| streams.send_snapshot(snapshot_id))
    }

    fn start_restore(
        &self,
        py: Python<'_>,
        account: &str,
        definition: &[u8],
        request: &[u8],
    ) -> PyResult<()> {
        self.with_streams(py, |streams| {
            streams.start_restore(account, definition, request)
        })
    }

    fn finish_restore(&self, py: Python<'_>, restore_id: &str, definition: &[u8]) -> PyResult<()> {
        self.with_streams(py, |streams| streams.finish_restore(restore_id, definition))
    }

    fn cancel_restore(&self, py: Python<'_>, restore_id: &str) -> PyResult<bool> {
        py.detach(|| Ok(self.inner.streams()?.cancel_restore(restore_id)))
            .map_err(to_python)
    }

    fn stored_consumers(&self, py: Python<'_>, account: &str, stream: &str) -> PyResult<Vec<Json>> {
        let stored = self.with_streams(py, |streams| streams.stored_consumers(account, stream))?;
        Ok(stored.into_iter().map(Cow::Owned).collect())
    }

    fn open_consumer(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        definition: &[u8],
    ) -> PyResult<()> {
        self.with_streams(py, |streams| {
            streams.open_consumer(account, stream, definition)
        })
    }

    fn consumers_opened(&self, py: Python<'_>, account: &str, stream: &str) -> PyResult<()> {
        self.with_streams(py, |streams| streams.consumers_opened(account, stream))
    }

    fn create_consumer(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        definition: &[u8],
    ) -> PyResult<Json> {
        self.json_of_streams(py, |streams| {
            streams.create_consumer(account, stream, definition)
        })
    }

    fn restore_consumer(
        &self,
        py: Python<'_>,
        restore_id: &str,
        definition: &[u8],
        state: &[u8],
    ) -> PyResult<()> {
        self.with_streams(py, |streams| {
            streams.restore_consumer(restore_id, definition, state)
        })
    }

    fn commit_restored_consumers(
        &self,
        py: Python<'_>,
        restore_id: &str,
    ) -> PyResult<Vec<(String, String)>> {
        self.with_streams(py, |streams| streams.commit_restored_consumers(restore_id))
    }

    fn serve_restored(&self, py: Python<'_>, restore_id: &str) -> PyResult<()> {
        self.with_streams(py, |streams| streams.serve_restored(restore_id))
    }

    fn begin_consumers(&self, py: Python<'_>, account: &str, stream: &str) -> PyResult<bool> {
        self.with_streams(py, |streams| streams.begin_consumers(account, stream))
    }

    fn commit_consumers(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
    ) -> PyResult<Vec<(String, String)>> {
        self.with_streams(py, |streams| streams.commit_consumers(account, stream))
    }

    fn update_consumer(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        definition: &[u8],
    ) -> PyResult<()> {
        self.with_streams(py, |streams| {
            streams.update_consumer(account, stream, definition)
        })
    }

    fn delete_consumer(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        name: &str,
    ) -> PyResult<()> {
        self.with_streams(py, |streams| streams.delete_consumer(account, stream, name))
    }

    fn consumer_state(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        name: &str,
    ) -> PyResult<Json> {
        self.json_of_streams(py, |streams| streams.consumer_state(account, stream, name))
    }

    fn reset_consumer(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        name: &str,
        sequence: u64,
    ) -> PyResult<u64> {
        self.with_streams(py, |streams| {
            streams.reset_consumer(account, stream, name, sequence)
        })
    }

    fn unpin_consumer(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        name: &str,
    ) -> PyResult<()> {
        self.with_streams(py, |streams| streams.unpin_consumer(account, stream, name))
    }

    fn stream_figures(&self, py: Python<'_>) -> PyResult<Json> {
        self.with_streams(py, |streams| {
            streams
                .figures()
                .map_err(|error| EngineError::Options(error.to_string()))
        })
        .map(Cow::Owned)
    }

    fn stream_hindrance(&self, py: Python<'_>, account: &str, stream: &str) -> PyResult<String> {
        self.with_streams(py, |streams| streams.stream_hindrance(account, stream))
    }

    fn consumer_hindrances(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        name: &str,
    ) -> PyResult<Json> {
        self.json_of_streams(py, |streams| {
            streams.consumer_hindrances(account, stream, name)
        })
    }

    fn consumer_pending(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        name: &str,
    ) -> PyResult<Json> {
        self.json_of_streams(py, |streams| {
            streams.consumer_pending(account, stream, name)
        })
    }

    fn first_sequence_at(
        &self,
        py: Python<'_>,
        account: &str,
        stream: &str,
        time_ns: i64,
    ) -> PyResult<u64> {
        self.with_streams(py, |streams| {
            streams.first_sequence_at(account, stream, time_ns)
        })
    }

    fn advance(&self, py: Python<'_>, duration_ns: i64) -> PyResult<()> {
        py.detach(|| self.inner.advance(duration_ns))
            .map_err(to_python)
    }

    fn stop_accepting(&self) {
        self.inner.stop_accepting();
    }

    fn announce_lame_duck(&self) -> usize {
        self.inner.announce_lame_duck()
    }

    fn next_event_sequence(&self) -> u64 {
        self.inner.shared().next_event_sequence()
    }

    fn kick(&self, connection_id: u64) -> bool {
        self.inner.kick(connection_id)
    }

    fn close_one_connection(&self) -> bool {
        self.inner.close_one_connection()
    }

    fn shutdown(&self, py: Python<'_>) {
        py.detach(|| self.inner.shutdown());
    }
}

/// Host and port.
pub(crate) fn pair(address: SocketAddr) -> (String, u16) {
    (address.ip().to_string(), address.port())
}
