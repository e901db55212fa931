"""`ConsumerCatalog`: the consumers of all streams, in memory and with the engine.

As with streams, what is decided goes to the engine first, which makes it survive a power cut, and then into memory. A
consumer whose definition cannot be served is offline: it stays on disk as it is, and its name stays taken.

Invariant: a name of a stream is a consumer that the engine serves, or offline with a reason, or free. Only consumers
that are there pause. One thread at a time changes what belongs to an account; others may read it.
"""

import time
from collections.abc import Callable, Iterable

import msgspec

from jetlake._engine import EngineError
from jetlake.management.catalog.pause_ends import PauseEnds
from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.state import ConsumerState, PendingMessages, read_consumer_state, read_pending
from jetlake.management.consumers.stream_consumers import Consumer, StreamConsumers
from jetlake.management.engine.failures import answered_as
from jetlake.management.engine.protocols import ConsumerEngine
from jetlake.management.wire.api_level import API_LEVEL, REQUIRED_LEVEL_KEY, is_level_too_high
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.shared.go_text import time_text


class _Definition(msgspec.Struct, frozen=True):
    name: str
    config: msgspec.Raw
    created: str


class _Name(msgspec.Struct, frozen=True):
    """What can be read of a definition that cannot be read."""

    name: str = ""


class _UnservedError(Exception):
    """Is raised for a definition that this server cannot serve; the text says why."""


class ConsumerCatalog:
    """All consumers of a server. `clock` tells unix nanoseconds."""

    def __init__(self, engine: ConsumerEngine, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._engine = engine
        self._clock = clock
        # By account and stream.
        self._consumers: dict[tuple[str, str], StreamConsumers] = {}
        self._offline: dict[tuple[str, str], dict[str, str]] = {}
        # When pauses end, by account, stream and consumer; only those that have not. Several threads look.
        self._pauses = PauseEnds()

    def open(self, account: str, stream: str) -> list[str]:
        """Open the consumers of an opened stream, and return the messages about them."""
        lines = []
        try:
            for definition in self._engine.stored_consumers(account, stream):
                lines += self._open(account, stream, definition)
            if not self.offline_of(account, stream):
                # Nobody is missing, so what nobody needs may go.
                self._engine.consumers_opened(account, stream)
        except EngineError as error:
            lines.append(f"Stream '{account} > {stream}': its consumers cannot be read: {error.args[-1]}")
        return lines

    def of(self, account: str, stream: str) -> StreamConsumers:
        """Return the consumers of a stream; there may be none."""
        return self._consumers.get((account, stream)) or StreamConsumers()

    def offline_of(self, account: str, stream: str) -> dict[str, str]:
        """Return the names of the consumers of a stream that are not served, each with the reason."""
        return self._offline.get((account, stream), {})

    def find(self, account: str, stream: str, name: str) -> Consumer:
        """Return a consumer, or raise `RequestError`."""
        self.check_online(account, stream, name)
        consumer = self.of(account, stream).get(name)
        if consumer is None:
            raise RequestError(ErrorCode.CONSUMER_NOT_FOUND)
        return consumer

    def check_online(self, account: str, stream: str, name: str) -> None:
        """Raise `RequestError` for a consumer that is there and cannot be served."""
        reason = self.offline_of(account, stream).get(name)
        if reason is not None:
            raise RequestError(ErrorCode.CONSUMER_OFFLINE_REASON, err=reason)

    def create(self, account: str, stream: str, name: str, config: ConsumerConfig) -> tuple[Consumer, ConsumerState]:
        """Make a consumer, and return it with its state before it has delivered anything.

        It delivers, and would survive a power cut, when `commit` has returned.
        """
        consumer = Consumer(name=name, config=config, created=time_text(self._clock()))
        with answered_as(ErrorCode.CONSUMER_CREATE):
            state = self._engine.create_consumer(account, stream, consumer.definition)
        self._put(account, stream, consumer)
        return consumer, read_consumer_state(state)

    def restore(
        self, account: str, stream: str, restore_id: str, name: str, config: ConsumerConfig, state: bytes
    ) -> None:
        """Make a consumer of an archive; it is durable when `commit_restored` has returned. Raises `RequestError`."""
        consumer = Consumer(name=name, config=config, created=time_text(self._clock()))
        with answered_as(ErrorCode.STREAM_RESTORE):
            self._engine.restore_consumer(restore_id, consumer.definition, state)
        self._put(account, stream, consumer)

    def commit_restored(self, restore_id: str) -> None:
        """Make durable the consumers that were restored. Raises `RequestError` unless all of them are."""
        with answered_as(ErrorCode.STREAM_RESTORE):
            reasons = self._engine.commit_restored_consumers(restore_id)
        for _, reason in reasons:
            raise RequestError(ErrorCode.CONSUMER_CREATE, err=reason)

    def begin_restored(self, account: str, stream: str) -> bool:
        """Let some consumers of a restored stream that is served deliver. Return whether others are left."""
        with answered_as(ErrorCode.STREAM_RESTORE):
            return self._engine.begin_consumers(account, stream)

    def commit(self, account: str, stream: str, names: Iterable[str]) -> dict[str, RequestError]:
        """Make durable the consumers that were made. Forget those that cannot be, and return them with the reason."""
        try:
            with answered_as(ErrorCode.CONSUMER_CREATE):
                reasons = dict(self._engine.commit_consumers(account, stream))
        except RequestError as error:
            refused = dict.fromkeys(names, error)
        else:
            refused = {name: RequestError(ErrorCode.CONSUMER_CREATE, err=reason) for name, reason in reasons.items()}
        for name in refused:
            self._remove(account, stream, name)
        return refused

    def update(
        self,
        account: str,
        stream: str,
        name: str,
        config: ConsumerConfig,
        failure: ErrorCode = ErrorCode.CONSUMER_CREATE,
    ) -> Consumer:
        """Replace the configuration of a consumer; `failure` is answered when the engine cannot."""
        consumer = msgspec.structs.replace(self.find(account, stream, name), config=config)
        with answered_as(failure):
            self._engine.update_consumer(account, stream, consumer.definition)
        self._put(account, stream, consumer)
        return consumer

    def delete(self, account: str, stream: str, name: str) -> None:
        """Delete a consumer."""
        self.find(account, stream, name)
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            self._engine.delete_consumer(account, stream, name)
        self._remove(account, stream, name)

    def forget(self, account: str, stream: str) -> None:
        """Forget the consumers of a stream that was deleted, with which the engine has deleted them."""
        self._consumers.pop((account, stream), None)
        self._pauses.forget_stream(account, stream)
        self._offline.pop((account, stream), None)

    def state(self, account: str, stream: str, name: str) -> ConsumerState:
        """Return the state of a consumer."""
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            return read_consumer_state(self._engine.consumer_state(account, stream, name))

    def pending(self, account: str, stream: str, name: str) -> PendingMessages:
        """Return what a consumer has delivered and waits for, message by message."""
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            return read_pending(self._engine.consumer_pending(account, stream, name))

    def reset(self, account: str, stream: str, name: str, sequence: int) -> int:
        """Restart a consumer at a sequence or, with 0, after the acknowledged ones. Return the sequence."""
        with answered_as(ErrorCode.CONSUMER_INVALID_RESET):
            return self._engine.reset_consumer(account, stream, name, sequence)

    def unpin(self, account: str, stream: str, name: str) -> None:
        """Have the consumer pin another client: there is one pinned client for all groups."""
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            self._engine.unpin_consumer(account, stream, name)

    def first_sequence_at(self, account: str, stream: str, time_ns: int) -> int:
        """Return the sequence of the first message that was stored at this time or later."""
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            return self._engine.first_sequence_at(account, stream, time_ns)

    @property
    def are_pausing(self) -> bool:
        """Whether any consumer pauses. Any thread may ask."""
        return self._pauses.next_ns() is not None

    def next_pause_end_ns(self) -> int | None:
        """Return when the next pause ends; None = no consumer pauses."""
        return self._pauses.next_ns()

    def take_ended_pauses(self) -> list[tuple[str, str, Consumer]]:
        """Return the consumers whose pause has ended since this was asked last, with account and stream."""
        ended = []
        for account, stream, name in self._pauses.take_ended(self._clock()):
            consumer = self.of(account, stream).get(name)
            if consumer is not None:
                ended.append((account, stream, consumer))
        return ended

    def _open(self, account: str, stream: str, definition: bytes) -> list[str]:
        try:
            consumer = _read_definition(definition)
            self._engine.open_consumer(account, stream, definition)
        except (_UnservedError, EngineError) as error:
            name, reason = _name_in(definition), str(error.args[-1])
            self._offline.setdefault((account, stream), {})[name] = reason
            where = f"{account} > {stream} > {name}"
            return [f"Consumer '{where}' is offline, its files stay as they are: {reason}"]
        self._put(account, stream, consumer)
        return []

    def _remove(self, account: str, stream: str, name: str) -> None:
        self._consumers[account, stream].remove(name)
        self._pauses.forget((account, stream, name))

    def _put(self, account: str, stream: str, consumer: Consumer) -> None:
        self._consumers.setdefault((account, stream), StreamConsumers()).put(consumer)
        until = consumer.config.pause_until
        if until is not None and until.unix_ns > self._clock():
            self._pauses.put((account, stream, consumer.name), until.unix_ns)
        else:
            self._pauses.forget((account, stream, consumer.name))


def _read_definition(definition: bytes) -> Consumer:
    try:
        read = msgspec.json.decode(definition, type=_Definition)
        config = ConsumerConfig.from_json(bytes(read.config))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, RequestError) as error:
        raise _UnservedError(f"its definition cannot be read: {error}") from error
    if is_level_too_high(config.metadata):
        level = (config.metadata or {})[REQUIRED_LEVEL_KEY]
        raise _UnservedError(f"it needs API level {level}, this server has {API_LEVEL}")
    return Consumer(name=read.name, config=config, created=read.created)


def _name_in(definition: bytes) -> str:
    try:
        return msgspec.json.decode(definition, type=_Name).name
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
