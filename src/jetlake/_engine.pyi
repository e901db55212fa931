"""The native engine (crates/engine-py): everything that happens once per message.

The whole surface is on this page. Options, verdicts and statistics cross the boundary as one JSON object each;
`jetlake.config.EngineOptions` is the Python side of the options. No call holds the GIL while it waits.
"""

from collections.abc import Callable
from typing import final

__all__ = [
    "ArchiveEvent",
    "AuthenticationRequest",
    "ConnectionEvent",
    "ConsumerEvent",
    "Engine",
    "EngineError",
    "LogLine",
    "PublishWriter",
    "Request",
    "Rights",
    "RowBatch",
    "RowReader",
    "Stopped",
    "StoreReader",
    "__version__",
    "build_profile",
    "check_options",
    "check_store",
    "own_requests",
    "run_load",
]

__version__: str
build_profile: str

class EngineError(Exception):
    """The engine refused or failed. `args` is (kind, message); the kinds are listed in crates/engine/src/common/error.rs."""

@final
class LogLine:
    """One line for the log. Levels: info, warning, error, debug, trace."""

    @property
    def level(self) -> str: ...
    @property
    def text(self) -> str: ...

@final
class AuthenticationRequest:
    """A client said CONNECT (or, where allowed, something else first) and waits for `Engine.admit` or `Engine.refuse`."""

    @property
    def connection_id(self) -> int: ...
    @property
    def connect(self) -> bytes: ...
    @property
    def nonce(self) -> str: ...
    @property
    def remote_address(self) -> str: ...
    @property
    def tls(self) -> bytes: ...
    @property
    def connection_type(self) -> str: ...
    @property
    def again(self) -> bool: ...

@final
class ConnectionEvent:
    """A client came (`connect`), left (`disconnect`) or was `refused`, or a link to another server is open (`link`).

    Reported only while the system account has a subscriber for it.
    """

    @property
    def kind(self) -> str: ...
    @property
    def connection(self) -> bytes: ...

@final
class ArchiveEvent:
    """A snapshot has ended (`snapshot_ended`), or a restore is complete (`restore_ready`) or over (`restore_failed`).

    The details are a JSON object, listed in crates/engine/src/stream/archive/restore.rs.
    """

    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def details(self) -> bytes: ...

@final
class ConsumerEvent:
    """Nobody has used a consumer for too long: it delivers nothing any more and waits to be deleted."""

    @property
    def account(self) -> str: ...
    @property
    def stream(self) -> str: ...
    @property
    def name(self) -> str: ...

@final
class Request:
    """A message for a handler that was registered with `Engine.subscribe`. The connection identifies the sender, never a header."""

    @property
    def service(self) -> int: ...
    @property
    def connection_id(self) -> int: ...
    @property
    def account(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def reply(self) -> str: ...
    @property
    def header(self) -> bytes: ...
    @property
    def payload(self) -> bytes: ...
    def may_publish(self, pattern: str) -> bool: ...
    def may_send_to(self, target: str, pattern: str) -> bool: ...

@final
class Rights:
    """What a user with these permissions may do. The permissions are JSON, as in the verdict of a login."""

    def __new__(cls, permissions: bytes) -> Rights: ...
    def may_publish(self, pattern: str) -> bool: ...
    def may_send_to(self, target: str, pattern: str) -> bool: ...

@final
class Stopped:
    """The engine has stopped. `failure` is empty after a wanted stop, else it says what broke."""

    @property
    def failure(self) -> str: ...

@final
class Engine:
    """One server: a listener, its worker threads and the subjects they route."""

    def __new__(cls, options: bytes, listener: int | None = None) -> Engine:
        """Create an engine. `listener` is the descriptor of a socket that is already listening; the engine takes it over."""
    @property
    def server_seed(self) -> bytes: ...
    @property
    def server_id(self) -> str: ...
    @property
    def address(self) -> tuple[str, int]: ...
    @property
    def websocket_address(self) -> tuple[str, int] | None: ...
    @property
    def leaf_address(self) -> tuple[str, int] | None: ...
    def start(self) -> None: ...
    def next_events(
        self, count_max: int, timeout_ms: int
    ) -> list[LogLine | AuthenticationRequest | ConnectionEvent | ArchiveEvent | ConsumerEvent | Request | Stopped]: ...
    def admit(self, connection_id: int, verdict: bytes) -> bool: ...
    def refuse(self, connection_id: int, cause: str = "") -> bool:
        """Refuse or disconnect a client; it receives the `cause` "revoked" or "account expired"."""
    def address_of(self, connection_id: int) -> str | None: ...
    def statistics(self) -> bytes: ...
    def connections(self) -> bytes: ...
    def connection(self, connection_id: int) -> bytes | None: ...
    def closed_connections(self) -> bytes: ...
    def subscriptions(self, query: bytes) -> bytes: ...
    def leaf_links(self) -> bytes:
        """Return the connections to hubs and of leaf nodes that are open, a JSON list: `jetlake.shared.engine_reports.LeafLink`."""
    def leaf_interest(self, connection_id: int) -> list[str]:
        """Return the subjects that the other side of a leaf connection wants."""
    def leaf_remotes(self) -> bytes:
        """Return how the configured hubs stand, a JSON list: `jetlake.shared.engine_reports.LeafRemoteState`."""
    def set_log_levels(self, debug: bool, trace: bool) -> None: ...
    def reload(self, options: bytes) -> None: ...
    def reauthenticate(self, account: str | None = None) -> None:
        """Ask again about every client, or about those of one account."""
    def subscribe(self, account: str, subject: str, queue: str | None = None) -> int: ...
    def subscribe_api(self, account: str, subject: str) -> int:
        """Like `subscribe`, but requests that the engine answers itself never reach Python: plain ones for one message."""
    def subscribe_untaken(self, account: str, subject: str) -> int:
        """Like `subscribe`, for messages that no stream takes: held until a stream is made or `refuse_untaken` is called.

        Only the subject is handed to Python, once.
        """
    def refuse_untaken(self, account: str, subject: str, text: str) -> None:
        """Answer what is held with an error; a stream that takes it after all gets it instead."""
    def unsubscribe(self, service: int) -> bool: ...
    def has_interest(self, account: str, subject: str) -> bool: ...
    def publish(
        self,
        account: str,
        subject: str,
        payload: bytes,
        reply: str | None = None,
        header: bytes | None = None,
        sender: Request | None = None,
    ) -> int:
        """Publish a message of the server's own, or of the sender of a request, who then needs the rights."""

    def open_streams(self, folder: str, options: bytes) -> tuple[list[tuple[str, str, bytes]], list[str]]:
        """Serve the streams of this folder; once, before `start`.

        Returns account, name and definition of each stream on disk, and what was wrong, one line each. Each is served
        after `open_stream`. The options are a JSON object, listed in crates/engine/src/stream/registry.rs.
        """
    def create_stream(self, account: str, definition: bytes) -> None:
        """Make a stream; it would survive a power cut and takes messages when this returns.

        The definition is a JSON object with `config` as in JetStream's API; other keys are kept with it.
        """
    def fork_stream(self, account: str, origin: str, last_sequence: int, definition: bytes) -> None:
        """Make a stream that begins as a copy of another up to a sequence, or of all of it with 0; both on disk."""
    def open_stream(self, account: str, name: str, definition: bytes) -> list[str]:
        """Open a stream that is on disk, and return what its recovery found, one line each."""
    def update_stream(self, account: str, definition: bytes) -> None: ...
    def delete_stream(self, account: str, name: str) -> None: ...
    def stream_state(self, account: str, name: str, query: bytes) -> bytes:
        """Return what is stored, in numbers, as JSON; both sides are listed in crates/engine/src/stream/registry.rs."""
    def purge_stream(self, account: str, name: str, subject: str | None, below_sequence: int, keep: int) -> int:
        """Remove messages, durably, and return how many. Zeros mean no bound."""
    def limit_account(self, account: str, memory_bytes_max: int, storage_bytes_max: int) -> None:
        """Refuse messages that would take an account's streams beyond these limits; -1 means no limit."""
    def message_misses(self, account: str) -> int:
        """Return how many requests for a message the engine has answered with that there is none."""
    def delete_message(self, account: str, name: str, sequence: int, erase: bool) -> bool:
        """Remove one message, durably; False when there is none. With `erase` its bytes are overwritten."""
    def stored_message(self, account: str, name: str, sequence: int) -> tuple[str, int, bytes] | None:
        """Return subject, time and payload of one message; None when there is none."""
    def stored_consumers(self, account: str, stream: str) -> list[bytes]:
        """Return the definitions of consumers that are on disk and not opened yet."""
    def open_consumer(self, account: str, stream: str, definition: bytes) -> None:
        """Serve one of them."""
    def consumers_opened(self, account: str, stream: str) -> None:
        """Say that all are opened: what they had settled is removed where a stream keeps only what is needed."""
    def create_consumer(self, account: str, stream: str, definition: bytes) -> bytes:
        """Make a consumer, which is neither durable nor delivers before `commit_consumers`. Return how it stands.

        The definition is a JSON object, listed in crates/engine/src/consumer/definition.rs.
        """
    def commit_consumers(self, account: str, stream: str) -> list[tuple[str, str]]:
        """Make durable all that were created, with one sync, and let them deliver. Return the names of those that are gone because that failed, and why."""
    def begin_consumers(self, account: str, stream: str) -> bool:
        """Let some consumers of a stream that was restored deliver; False when none are left that do not."""
    def update_consumer(self, account: str, stream: str, definition: bytes) -> None: ...
    def delete_consumer(self, account: str, stream: str, name: str) -> None: ...
    def consumer_state(self, account: str, stream: str, name: str) -> bytes:
        """Return how a consumer stands, a JSON object, listed in crates/engine/src/stream/consumers/registry.rs."""
    def reset_consumer(self, account: str, stream: str, name: str, sequence: int) -> int:
        """Restart a consumer at this sequence, or after the acknowledged ones if it is 0; return the sequence."""
    def unpin_consumer(self, account: str, stream: str, name: str) -> None:
        """Let another client of a group be chosen."""
    def stream_figures(self) -> bytes:
        """Return the figures of all streams and consumers, a JSON object, listed in crates/engine/src/stream/usage/figures.rs."""
    def stream_hindrance(self, account: str, stream: str) -> str:
        """Return why nothing can be stored in a stream at the moment; empty if it can."""
    def consumer_hindrances(self, account: str, stream: str, name: str) -> bytes:
        """Return what might keep messages from moving, a JSON object, listed in crates/engine/src/stream/consumers/registry.rs."""
    def consumer_pending(self, account: str, stream: str, name: str) -> bytes:
        """Return what waits for its acknowledgement, a JSON object, listed in crates/engine/src/stream/consumers/registry.rs."""
    def first_sequence_at(self, account: str, stream: str, time_ns: int) -> int:
        """Return the first sequence of a stream that is not older than a moment."""
    def plan_scan(self, account: str, name: str, request: bytes) -> bytes:
        """Return how a range of a stream can be divided among readers; both sides are JSON objects, listed in crates/engine/src/stream/read/scans.rs."""
    def scan_files(self, account: str, name: str, request: bytes) -> bytes:
        """Return where a range of a stream lies on disk; the answer is what `StoreReader` takes, listed in crates/engine/src/storage/store/pieces.rs."""
    def start_scan(self, account: str, name: str, request: bytes) -> None:
        """Send a range of a stream as Arrow; its reader learns how it ended.

        The request is a JSON object, listed in crates/engine/src/stream/read/scan.rs.
        """
    def begin_snapshot(self, account: str, name: str, request: bytes) -> None:
        """Begin a snapshot of a stream, which is sent after `send_snapshot`.

        The request is a JSON object, listed in crates/engine/src/stream/archive/snapshot.rs.
        """
    def add_to_snapshot(self, snapshot_id: str, consumers: bytes) -> None:
        """Note how some consumers stand, a JSON list of names and configurations. Nothing is left of the snapshot when this raises."""
    def send_snapshot(self, snapshot_id: str) -> None:
        """Send a snapshot that has begun as an archive; an `ArchiveEvent` reports its end."""
    def start_restore(self, account: str, definition: bytes, request: bytes) -> None:
        """Receive the chunks of an archive; an `ArchiveEvent` reports the outcome.

        The request is a JSON object, listed in crates/engine/src/stream/archive/restore.rs.
        """
    def finish_restore(self, restore_id: str, definition: bytes) -> None:
        """Make a stream of what was restored, for its consumers to be created in. Nobody finds it before `serve_restored`.

        Nothing is left of it when this raises.
        """
    def restore_consumer(self, restore_id: str, definition: bytes, state: bytes) -> None:
        """Make a consumer that goes on where an archive says it was, a JSON object; durable after the next call."""
    def commit_restored_consumers(self, restore_id: str) -> list[tuple[str, str]]:
        """Make durable all that were restored, with one sync. Return the names of those that are gone because that failed, and why."""
    def serve_restored(self, restore_id: str) -> None:
        """Serve a stream that was restored; it would survive a power cut with its consumers when this returns.

        They deliver after `begin_consumers`. Nothing is left of it when this raises.
        """
    def cancel_restore(self, restore_id: str) -> bool:
        """Forget what was restored and is not served yet; False when there is nothing to forget."""
    def advance(self, duration_ns: int) -> None:
        """Set a clock that was made to stand still forward, and see to what is due by then."""
    def stop_accepting(self) -> None: ...
    def announce_lame_duck(self) -> int: ...
    def next_event_sequence(self) -> int:
        """Return the number of the next event or answer of the server itself."""
    def kick(self, connection_id: int) -> bool: ...
    def close_one_connection(self) -> bool: ...
    def shutdown(self) -> None: ...

def check_options(options: bytes, remotes: bytes) -> None:
    """Refuse options that an engine could not start with, such as invalid certificates, and such remotes.

    Both are JSON: the object that `Engine` takes, and the list of remotes that `Engine.serve_streams` takes.
    """

def own_requests() -> bytes:
    """Return what clients may send to the engine itself, as JSON: pattern, needs, condition and targets of each."""

def run_load(plan: bytes) -> bytes:
    """Run one load of `jetlake bench` and return its figures; both sides are JSON objects."""

def check_store(folder: str, progress: Callable[[int, int], object] | None = None) -> str:
    """Examine the store in a folder without changing it and return the report, a JSON object.

    `progress` receives the bytes done and the bytes in total; an exception from it ends the check. Raises `OSError`.
    """

@final
class RowBatch:
    """Rows as Arrow, handed over without a copy: `pyarrow.record_batch(batch)`."""

    @property
    def rows(self) -> int: ...
    @property
    def size_bytes(self) -> int:
        """The memory its columns hold."""
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class RowReader:
    """A client's reading of one range of one stream, without its socket: bytes of a server in, Arrow out.

    The caller connects (INFO, CONNECT, TLS, first PING and PONG), then repeats until `finished`: write `to_send()`, read,
    `feed()`. The reader subscribes, asks, asks on, answers PINGs and flow control, and tidies up after itself: what
    `to_send` returns once `finished` is true ends its subscription and its consumer, and the connection can be used on.
    One reader at a time per connection; messages for other subscriptions are passed over.

    The options are a JSON object; unknown keys are refused:
    - `stream`: its name; `inbox`: a subject of the caller's own, without wildcards, that nobody else uses; `sid`: the
      subscription number to use, 1 if not given, another one for every reader or writer of a connection; `api_prefix`:
      `$JS.API` if not given.
    - `source`: `consumer` (any server, ordered, the fast way on nats-server), `direct_get` (needs `allow_direct` and
      nats-server 2.11) or `scan` (Jetlake: the server makes the columns and sends only those).
    - `start` and `end`: the sequences, `end` not included; an `end` of 0 is where the stream ends when this is asked.
    - `columns`: any of `stream`, `subject`, `sequence`, `timestamp`, `time_ns`, `headers`, `data`, in any order; all of them,
      in this order, if not given. The types are string, string, int64, timestamp[us, tz=UTC], int64,
      map<string, list<string>> (empty, never NULL) and binary; every field is nullable.
    - `subjects`: only messages on one of these, wildcards allowed; empty for all.
    - `decompress`: `zlib` (gzip too), `snappy` (block or framed), `zstd`, or empty. `bad_payload`: `fail` (the default) or
      `null`, which gives NULL for data that does not decompress.
    - `batch_rows` (8192) and `batch_bytes` (8 MiB): a batch ends at the first of them; one larger message comes alone.
    - `request_rows`: messages asked for at a time from a consumer or by direct get, 8192 if not given.

    Errors are `EngineError` with the kinds `options`, `refused` (the server said no, with its words), `protocol` (bytes that
    are not NATS), `lost` (the stream or the consumer went away, or gaps of delivery came too often) and `data`. The
    reader is over after one.
    """

    def __new__(cls, options: bytes) -> RowReader: ...
    def feed(self, data: bytes | bytearray | memoryview) -> list[RowBatch]:
        """Take what was read from the socket, in any pieces, and return the batches that are full; the last ones at the end."""
    def flush(self) -> list[RowBatch]:
        """Return the rows that fill no batch yet, at most one batch, to hand them on while waiting for more."""
    def stop(self) -> None:
        """End the reading here; `to_send` then returns what cleans up. Nothing may be fed afterwards."""
    def to_send(self) -> bytes:
        """Return what to write to the socket now, empty if nothing. To be asked at first and after every `feed`."""
    @property
    def finished(self) -> bool: ...
    @property
    def rows(self) -> int:
        """How many rows have come so far, in batches or waiting for one."""
    @property
    def first_sequence(self) -> int:
        """The sequence of the first row, 0 if there is none yet."""
    @property
    def last_sequence(self) -> int:
        """The sequence of the last row, 0 if there is none yet."""

@final
class StoreReader:
    """A range of a stream read straight from the files of a Jetlake server on the same host; nothing is written.

    The caller asks `$JS.API.STREAM.SCAN.FILES.<stream>` with `{"start": …, "end": …}` just before, and gives `pieces` of the
    answer. An error of kind `lost` means that the files are not here or have changed: the rows that came are right, and
    the rest is read over the connection, after `last_sequence`. The server refuses for streams in memory and
    for encrypted ones.

    The options are a JSON object; unknown keys are refused: `stream`, `pieces`, and as for `RowReader` `columns`, `subjects`,
    `decompress`, `bad_payload`, `batch_rows` and `batch_bytes`.
    """

    def __new__(cls, options: bytes) -> StoreReader: ...
    def read(self) -> list[RowBatch]:
        """Return the next batches, none when everything has been read."""
    @property
    def rows(self) -> int: ...
    @property
    def first_sequence(self) -> int: ...
    @property
    def last_sequence(self) -> int:
        """The sequence of the last row that was returned or waits to be."""

@final
class PublishWriter:
    """A client's publishing of rows with every acknowledgement checked, without its socket: Arrow in, bytes for a server out.

    The caller connects as for `RowReader`, then repeats: `add()` a batch when `waiting` is 0, write `to_send()`, read and `feed()`
    when `to_send` was empty or `outstanding` is high. Everything is stored when `waiting` and `outstanding` are 0.

    The options are a JSON object; unknown keys are refused:
    - `inbox` and `sid` as for `RowReader`.
    - `subject`: where rows go that have no subject of their own; may be empty.
    - `stream`: if given, a message that another stream would take is refused (`Nats-Expected-Stream`).
    - `ids`: `content` gives every message the id `<id_prefix>-<128-bit hash of subject, headers and data>-<occurrence>`, so that
      a retried task stores nothing twice, in any order of its rows; `column` takes the column `msg_id`; `none`; `upload` sends
      what a Jetlake server stores all at once when it is committed.
    - `id_prefix`: `<query>-<batch>-<partition>`; needed with `content`.
    - `upload`: `id`, `query` and `run` of an upload.
    - `payload_bytes_max`: what the server's INFO says as `max_payload`; a larger message is refused before it is sent.
    - `outstanding_max` (4096 messages) and `outstanding_bytes_max` (8 MiB): what may be sent and not acknowledged.

    Columns: `subject` (string), `data` or `value` (binary or string), `headers` (map<string, list<string>> or
    map<string, string>), `msg_id` (string, only with the ids `column`), each but `data` or `value` optional; another column
    is refused. NULL data is an empty message, NULL headers are none.

    Errors as for `RowReader`; `refused` carries the server's text, `data` names the column and row.
    """

    def __new__(cls, options: bytes) -> PublishWriter: ...
    def add(self, batch: object) -> None:
        """Take rows: a batch of pyarrow or anything else with `__arrow_c_array__`. Refused while `waiting` is not 0."""
    def end(self) -> None:
        """Finish after the last row: an upload has an end marker, which must be sent, too."""
    def to_send(self) -> bytes:
        """Return what to write to the socket now: as many messages as may be outstanding, at most about 1 MiB at a time."""
    def feed(self, data: bytes | bytearray | memoryview) -> None: ...
    @property
    def waiting(self) -> int:
        """How many rows are added and not sent."""
    @property
    def outstanding(self) -> int:
        """How many messages are sent and not acknowledged."""
    @property
    def stored(self) -> int:
        """How many messages the server has stored, or has of the upload."""
    @property
    def duplicates(self) -> int:
        """How many messages the server had already, by their ids."""
