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
    "Request",
    "Stopped",
    "__version__",
    "build_profile",
    "check_store",
    "run_load",
]

__version__: str
build_profile: str

class EngineError(Exception):
    """The engine refused or failed. `args` is (kind, message); the kinds are listed in crates/engine/src/error.rs."""

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
    def again(self) -> bool: ...

@final
class ConnectionEvent:
    """A client came (`connect`), left (`disconnect`) or was `refused`; only said when somebody in the system account listens."""

    @property
    def kind(self) -> str: ...
    @property
    def connection(self) -> bytes: ...

@final
class ArchiveEvent:
    """A snapshot has ended (`snapshot_ended`), or a restore is complete (`restore_ready`) or over (`restore_failed`).

    The details are a JSON object, listed in crates/engine/src/stream/restore.rs.
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
    """A message for a handler that was registered with `Engine.subscribe`. Who sent it is said by the connection, never by a header."""

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

@final
class Stopped:
    """The engine has stopped. `failure` is empty after a wanted stop, else it says what broke."""

    @property
    def failure(self) -> str: ...

@final
class Engine:
    """One server: a listener, its worker threads and the subjects they route."""

    def __new__(cls, options: bytes) -> Engine: ...
    @property
    def server_id(self) -> str: ...
    @property
    def address(self) -> tuple[str, int]: ...
    def start(self) -> None: ...
    def next_events(
        self, count_max: int, timeout_ms: int
    ) -> list[LogLine | AuthenticationRequest | ConnectionEvent | ArchiveEvent | ConsumerEvent | Request | Stopped]: ...
    def admit(self, connection_id: int, verdict: bytes) -> bool: ...
    def refuse(self, connection_id: int) -> bool: ...
    def statistics(self) -> bytes: ...
    def connections(self) -> bytes: ...
    def closed_connections(self) -> bytes: ...
    def subscriptions(self, query: bytes) -> bytes: ...
    def set_log_levels(self, debug: bool, trace: bool) -> None: ...
    def reload(self, options: bytes) -> None: ...
    def reauthenticate(self) -> None: ...
    def subscribe(self, account: str, subject: str, queue: str | None = None) -> int: ...
    def subscribe_api(self, account: str, subject: str) -> int:
        """Like `subscribe`, but requests that the engine answers itself never reach Python: plain ones for one message."""
    def unsubscribe(self, service: int) -> bool: ...
    def has_interest(self, account: str, subject: str) -> bool: ...
    def publish(
        self, account: str, subject: str, payload: bytes, reply: str | None = None, header: bytes | None = None
    ) -> int: ...
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
        """Refuse messages that would take an account's streams beyond these; -1 is no limit."""
    def message_misses(self, account: str) -> int:
        """Return how many requests for a message the engine has answered with that there is none."""
    def delete_message(self, account: str, name: str, sequence: int, erase: bool) -> bool:
        """Remove one message, durably; False when there is none. With `erase` its bytes are overwritten."""
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
    def restore_consumer(self, account: str, stream: str, definition: bytes, state: bytes) -> None:
        """Make a consumer that goes on where an archive says it was, a JSON object; `commit_consumers` as above."""
    def commit_consumers(self, account: str, stream: str) -> None:
        """Make durable all that were created, with one sync, and let them deliver; where that fails, they are gone."""
    def update_consumer(self, account: str, stream: str, definition: bytes) -> None: ...
    def delete_consumer(self, account: str, stream: str, name: str) -> None: ...
    def consumer_state(self, account: str, stream: str, name: str) -> bytes:
        """Return how a consumer stands, a JSON object, listed in crates/engine/src/stream/consumer_registry.rs."""
    def reset_consumer(self, account: str, stream: str, name: str, sequence: int) -> int:
        """Begin anew at a sequence, behind the acknowledged ones if that is 0, and return it."""
    def unpin_consumer(self, account: str, stream: str, name: str) -> None:
        """Let another client of a group be chosen."""
    def stream_figures(self) -> bytes:
        """Return the figures of all streams and consumers, a JSON object, listed in crates/engine/src/stream/figures.rs."""
    def stream_hindrance(self, account: str, stream: str) -> str:
        """Return why nothing can be stored in a stream at the moment; empty if it can."""
    def consumer_hindrances(self, account: str, stream: str, name: str) -> bytes:
        """Return what might keep messages from moving, a JSON object, listed in crates/engine/src/stream/consumer_registry.rs."""
    def first_sequence_at(self, account: str, stream: str, time_ns: int) -> int:
        """Return the first sequence of a stream that is not older than a moment."""
    def start_snapshot(self, account: str, name: str, request: bytes) -> None:
        """Send a stream as an archive; its end is told as an `ArchiveEvent`.

        The request is a JSON object, listed in crates/engine/src/stream/snapshot.rs.
        """
    def start_restore(self, account: str, definition: bytes, request: bytes) -> None:
        """Take the chunks of an archive; what comes of it is told as an `ArchiveEvent`.

        The request is a JSON object, listed in crates/engine/src/stream/restore.rs.
        """
    def finish_restore(self, restore_id: str, definition: bytes) -> None:
        """Make a stream of what was restored; it would survive a power cut when this returns.

        Nothing is left of it when this raises.
        """
    def cancel_restore(self, restore_id: str) -> bool:
        """Forget what was restored; False when there is nothing to forget."""
    def advance(self, duration_ns: int) -> None:
        """Set a clock that was made to stand still forward, and see to what is due by then."""
    def stop_accepting(self) -> None: ...
    def announce_lame_duck(self) -> int: ...
    def kick(self, connection_id: int) -> bool: ...
    def close_one_connection(self) -> bool: ...
    def shutdown(self) -> None: ...

def run_load(plan: bytes) -> bytes:
    """Run one load of `jetlake bench` and return its figures; both sides are JSON objects."""

def check_store(folder: str, progress: Callable[[int, int], object] | None = None) -> str:
    """Examine the store in a folder without changing it and return the report, a JSON object.

    `progress` is told how many bytes of how many are done; what it raises ends the check. Raises `OSError`.
    """
