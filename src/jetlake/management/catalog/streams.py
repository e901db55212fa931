"""`StreamCatalog`: the streams of all accounts, in memory and with the engine; their consumers are kept beside them.

A definition is the configuration and the time of creation, as JSON; the engine keeps it and gives it back at the next
start. What is decided goes to the engine first, which makes it survive a power cut, and then into memory: a decision
that the engine refuses has never been made.

A stream whose definition cannot be served (it needs a newer server, or cannot be read, or its files cannot be opened)
is offline: it stays on disk as it is, and its name stays taken. So is one that is being restored, until its consumers
are there.

Invariant: a name of an account is a stream that the engine serves, or offline with a reason, or free. One thread at a
time changes what belongs to an account; others may read it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from jetlake._engine import EngineError
from jetlake.config import EngineRemote
from jetlake.management.catalog.consumers import ConsumerCatalog
from jetlake.management.catalog.reservations import Reservations
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.engine.failures import answered_as
from jetlake.management.engine.protocols import KeepingEngine
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.context import ExistingConsumer, ServerLimits, StreamAccountLimits, StreamContext
from jetlake.management.streams.state import QUICK_QUERY, StateQuery, StreamState, read_state
from jetlake.management.streams.stream import Stream
from jetlake.management.wire.api_level import API_LEVEL, REQUIRED_LEVEL_KEY, is_level_too_high
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.shared.go_text import time_text

RESTORING = "it is being restored"
"""Why a stream is offline that has its messages and not yet its consumers."""


class StoreOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the engine stores. It takes exactly these fields, and has the same defaults."""

    sync_always: bool = True
    sync_interval_ms: int = 120_000
    domain: str = ""
    # Those of consumers name domain and account.
    long_ack_subjects: bool = False
    # What all streams together may take up; -1 = no limit.
    memory_bytes_max: int = -1
    storage_bytes_max: int = -1
    # 0 = the engine's own limits.
    buffered_messages_max: int = 0
    buffered_bytes_max: int = 0
    # Of atomic batches; 0 as above.
    batches_per_stream_max: int = 0
    batches_max: int = 0
    batch_messages_max: int = 0
    batch_idle_ms_max: int = 0
    # What messages and consumers are encrypted with, and what they were before; empty = not.
    key: str = ""
    previous_key: str = ""
    # Where streams may be copied from besides their own account.
    remotes: tuple[EngineRemote, ...] = ()


class _Definition(msgspec.Struct, frozen=True):
    config: msgspec.Raw
    created: str


class StreamCatalog:
    """All streams of a server. `clock` tells unix nanoseconds."""

    def __init__(self, engine: KeepingEngine, *, clock: Callable[[], int] = time.time_ns) -> None:
        self.consumers = ConsumerCatalog(engine, clock=clock)
        self._engine = engine
        self._clock = clock
        self._configs: dict[str, AccountStreams] = {}
        self._streams: dict[str, dict[str, Stream]] = {}
        self._offline: dict[str, dict[str, str]] = {}
        self._reserved = Reservations()

    def open(self, folder: str, options: StoreOptions) -> list[str]:
        """Open every stream in the folder, and return the messages about them. Raises `EngineError`.

        All streams are there before the consumers of any: what a stream keeps for its readers stays until all of them
        are, its consumers and the streams that have it as a source or mirror it.
        """
        stored, lines = self._engine.open_streams(folder, msgspec.json.encode(options))
        opened = []
        for account, name, definition in stored:
            where = f"{account} > {name}"
            try:
                stream = _read_definition(name, definition)
                findings = self._engine.open_stream(account, name, definition)
            except (_UnservedError, EngineError) as error:
                reason = str(error.args[-1])
                self._offline.setdefault(account, {})[name] = reason
                lines.append(f"Stream '{where}' is offline, its files stay as they are: {reason}")
                continue
            self._reserved.reserve(stream.config)
            self._put(account, stream)
            lines += [f"Stream '{where}': {finding}" for finding in findings]
            opened.append((account, name))
        for account, name in opened:
            lines += self.consumers.open(account, name)
        return lines

    @property
    def accounts(self) -> list[str]:
        """The accounts that have streams."""
        return sorted(account for account, streams in list(self._streams.items()) if streams)

    def streams_of(self, account: str) -> AccountStreams:
        """Return the streams of an account; there may be none."""
        return self._configs.get(account) or AccountStreams()

    def offline_of(self, account: str) -> dict[str, str]:
        """Return the names of the streams of an account that are not served, each with the reason."""
        return self._offline.get(account, {})

    def find(self, account: str, name: str) -> Stream:
        """Return a stream, or raise `RequestError`."""
        self.check_online(account, name)
        stream = self._streams.get(account, {}).get(name)
        if stream is None:
            raise RequestError(ErrorCode.STREAM_NOT_FOUND)
        return stream

    def check_online(self, account: str, name: str) -> None:
        """Raise `RequestError` for a stream that is there and cannot be served."""
        reason = self.offline_of(account).get(name)
        if reason is not None:
            raise RequestError(ErrorCode.STREAM_OFFLINE_REASON, err=reason)

    def context(self, account: str, settings: ManagementSettings, name: str = "") -> StreamContext:
        """Return what a decision about a stream of this account needs to know, about this one if there is a name."""
        server = msgspec.structs.replace(
            settings.server, reserved_memory=self._reserved["memory"], reserved_storage=self._reserved["file"]
        )
        limits = settings.accounts.get(account, StreamAccountLimits())
        consumers = tuple(
            ExistingConsumer(
                name=consumer.name,
                inactive_threshold=consumer.config.inactive_threshold,
                max_ack_pending=consumer.config.max_ack_pending,
            )
            for consumer in self.consumers.of(account, name).values()
        )
        return StreamContext(streams=self.streams_of(account), account=limits, server=server, consumers=consumers)

    def consumer_context(
        self, account: str, name: str, settings: ManagementSettings, has_interest: Callable[[str], bool]
    ) -> ConsumerContext:
        """Return what a decision about a consumer of this stream needs to know, or raise `RequestError`."""
        return ConsumerContext(
            stream=self.find(account, name).config,
            consumers=self.consumers.of(account, name),
            account=settings.accounts.get(account, StreamAccountLimits()),
            server=settings.server,
            has_interest=has_interest,
        )

    def create(self, account: str, config: StreamConfig) -> Stream:
        """Make a stream. When this returns it would survive a power cut."""
        stream = Stream(config=config, created=time_text(self._clock()))
        with self._reserving(config), answered_as(ErrorCode.STREAM_CREATE):
            self._engine.create_stream(account, stream.definition)
        self._put(account, stream)
        return stream

    def restore(self, account: str, config: StreamConfig, restore_id: str, *, created: str = "") -> Stream:
        """Make a stream of what was restored, for its consumers to be created in; it is offline until `end_restore`."""
        stream = Stream(config=config, created=created or time_text(self._clock()))
        with self._reserving(config), answered_as(ErrorCode.STREAM_RESTORE):
            self._engine.finish_restore(restore_id, stream.definition)
        self._offline.setdefault(account, {})[config.name] = RESTORING
        self._put(account, stream)
        return stream

    def serve_restored(self, restore_id: str) -> None:
        """Have the engine serve a stream that was restored. When this returns all of it would survive a power cut."""
        with answered_as(ErrorCode.STREAM_RESTORE):
            self._engine.serve_restored(restore_id)

    def end_restore(self, account: str, name: str) -> None:
        """Let requests find a stream that was restored."""
        reason = self._offline[account].pop(name)
        assert reason == RESTORING, reason

    def cancel_restore(self, account: str, name: str, restore_id: str) -> None:
        """Forget a stream that was restored and is not served."""
        self._engine.cancel_restore(restore_id)
        self.end_restore(account, name)
        self._forget(account, name)

    def fork(self, account: str, config: StreamConfig, origin: str, last_sequence: int) -> Stream:
        """Make a stream that begins as a copy of another. When this returns it would survive a power cut."""
        stream = Stream(config=config, created=time_text(self._clock()))
        with self._reserving(config), answered_as(ErrorCode.STREAM_CREATE):
            self._engine.fork_stream(account, origin, last_sequence, stream.definition)
        self._put(account, stream)
        return stream

    def update(self, account: str, config: StreamConfig) -> Stream:
        """Replace the configuration of a stream."""
        before = self.find(account, config.name)
        stream = Stream(config=config, created=before.created)
        with self._reserving(config, before.config), answered_as(ErrorCode.STREAM_UPDATE):
            self._engine.update_stream(account, stream.definition)
        self._put(account, stream)
        return stream

    def delete(self, account: str, name: str) -> None:
        """Delete a stream with everything in it."""
        self.find(account, name)
        with answered_as(ErrorCode.STREAM_DELETE):
            self._engine.delete_stream(account, name)
        self._forget(account, name)

    def _forget(self, account: str, name: str) -> None:
        stream = self._streams[account].pop(name)
        self._reserved.release(stream.config)
        self._configs[account].remove(name)
        self.consumers.forget(account, name)

    def consumer_count(self, account: str, name: str) -> int:
        """Return how many consumers a stream has, as answers about it tell."""
        return len(self.consumers.of(account, name).public_names)

    def misses(self, account: str) -> int:
        """Return how many requests for a message have found none."""
        return self._engine.message_misses(account)

    def limit(self, accounts: Mapping[str, StreamAccountLimits], server: ServerLimits) -> None:
        """Have the engine refuse messages beyond an account's limits, and reserve no more than all may have."""
        self._reserved.limit(server)
        for account, limits in accounts.items():
            self._engine.limit_account(account, limits.max_memory, limits.max_storage)

    def state(self, account: str, name: str, query: StateQuery | None = None) -> StreamState:
        """Return the state of a stream."""
        encoded = QUICK_QUERY if query is None else msgspec.json.encode(query)
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            return read_state(self._engine.stream_state(account, name, encoded))

    def purge(self, account: str, name: str, *, subject: str, below_sequence: int, keep: int) -> int:
        """Remove messages, and return how many; an empty subject means those of all subjects."""
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            return self._engine.purge_stream(account, name, subject or None, below_sequence, keep)

    def delete_message(self, account: str, name: str, sequence: int, *, erase: bool) -> bool:
        """Remove one message, and return whether there was one."""
        with answered_as(ErrorCode.STREAM_MESSAGE_DELETE_FAILED):
            return self._engine.delete_message(account, name, sequence, erase)

    def message(self, account: str, name: str, sequence: int) -> tuple[str, int, bytes] | None:
        """Return subject, time and payload of one message; None = it is not there."""
        return self._engine.stored_message(account, name, sequence)

    def _put(self, account: str, stream: Stream) -> None:
        self._streams.setdefault(account, {})[stream.config.name] = stream
        self._configs.setdefault(account, AccountStreams()).put(stream.config)

    @contextmanager
    def _reserving(self, config: StreamConfig, before: StreamConfig | None = None) -> Iterator[None]:
        """Reserve what a stream may grow to, unless what happens meanwhile fails."""
        self._reserved.reserve(config, before)
        try:
            yield
        except BaseException:
            self._reserved.release(config, before)
            raise


class _UnservedError(Exception):
    """Is raised for a definition that this server cannot serve; the text says why."""


def _read_definition(name: str, definition: bytes) -> Stream:
    try:
        read = msgspec.json.decode(definition, type=_Definition)
        config = StreamConfig.from_json(bytes(read.config))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, RequestError) as error:
        raise _UnservedError(f"its definition cannot be read: {error}") from error
    if config.name != name:
        raise _UnservedError(f"its definition is that of '{config.name}'")
    if is_level_too_high(config.metadata):
        level = (config.metadata or {})[REQUIRED_LEVEL_KEY]
        raise _UnservedError(f"it needs API level {level}, this server has {API_LEVEL}")
    return Stream(config=config, created=read.created)
