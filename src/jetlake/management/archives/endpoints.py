"""The endpoints of snapshot and restore, and the outcome of those under way.

Both are answered at once and continue in the engine, which sends and receives the chunks and reports when it is done:

| event             | what it leads to                                                                          |
|-------------------|-------------------------------------------------------------------------------------------|
| `snapshot_ended`  | an advisory                                                                               |
| `restore_ready`   | the stream and its consumers are created or dropped; the last chunk's sender is answered  |
| `restore_failed`  | the sender of the chunk at which it failed gets the reason                                |

Invariant: a restore that has begun ends with exactly one answer, unless its sender has gone silent; a name is a stream
only after the engine has made it survive a power cut, all its consumers included. Nothing is left of a restore that
fails, or that the server does not finish before it stops or is killed.
"""

import time
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from jetlake._engine import EngineError
from jetlake.management.archives import requests as restore_requests
from jetlake.management.archives.consumers import make_consumers, read_consumers
from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.endpoints.account import AccountEndpoints
from jetlake.management.engine.protocols import ArchiveEvent, ManagedEngine
from jetlake.management.requests.advisories import Advisories, new_id
from jetlake.management.requests.calls import Call, Granted, Steps
from jetlake.management.requests.rights import (
    SendTarget,
    check_stream_targets,
    check_target,
)
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.info import describe, describe_state
from jetlake.management.streams.stream import Stream
from jetlake.management.subjects.names import is_literal_subject
from jetlake.management.wire import replies
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_dialect import write_json
from jetlake.management.wire.json_types import Boolean, Integer, Record, RecordField, Text
from jetlake.management.wire.times import Timestamp, TimestampError
from jetlake.shared.go_text import time_text

CHUNK_BYTES_DEFAULT = 128 * 1024
CHUNK_BYTES_MIN = 1024
CHUNK_BYTES_MAX = 1024 * 1024
"""Chunks are messages; larger ones would not fit through servers with the usual `max_payload`."""

WINDOW_BYTES_DEFAULT = 8 * 1024 * 1024
WINDOW_BYTES_MAX = 32 * 1024 * 1024
"""What may be on its way without an acknowledgement; nats-server's own bounds."""

CONSUMERS_PER_STEP = 100
"""Consumers added to a snapshot in one turn of a lane: some five milliseconds of writing configurations."""

UNLIMITED_BYTES = 2**63 - 1

_INT = Integer("int", -(2**63), 2**63 - 1)


class SnapshotRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Where the chunks go, and how large they are."""

    deliver_subject: str = ""
    no_consumers: bool = False
    chunk_size: int = 0
    window_size: int = 0
    jsck: bool = False


_SNAPSHOT_REQUEST = Record(
    "server.JSApiStreamSnapshotRequest",
    SnapshotRequest,
    (
        RecordField("deliver_subject", Text()),
        RecordField("no_consumers", Boolean()),
        RecordField("chunk_size", _INT),
        RecordField("window_size", _INT),
        RecordField("jsck", Boolean()),
    ),
    can_be_absent=False,
)


class _Running(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot or a restore under way."""

    account: str
    stream: str
    start: str
    client: dict[str, Any]
    # For a restore, with its requester, whose rights limit where the archive can make the server send to.
    config: StreamConfig | None = None
    call: Call | None = None


class _Details(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine says about one."""

    reply: str = ""
    bytes: int = 0
    # Those of the archive, to be read one by one, and how many were in the form of old archives, which is not read.
    consumers: tuple[msgspec.Raw, ...] = ()
    consumers_lost: int = 0
    # When the stream was made, if the archive knows.
    created: str = ""
    failure: str = ""
    # There would be more than may be stored.
    exceeded: bool = False
    # There is a stream of this name by now.
    taken: bool = False
    # Nothing came for too long, so nobody waits for an answer.
    stalled: bool = False


_DETAILS = msgspec.json.Decoder(_Details)


class ArchiveEndpoints:
    """The endpoints, with what they work on. `settings` returns those in force."""

    def __init__(
        self,
        engine: ManagedEngine,
        catalog: StreamCatalog,
        accounts: AccountEndpoints,
        advisories: Advisories,
        settings: Callable[[], ManagementSettings],
        warn: Callable[[str], None],
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._accounts = accounts
        self._advisories = advisories
        self._settings = settings
        self._warn = warn
        self._clock = clock
        self._running: dict[str, _Running] = {}

    def snapshot(self, call: Call) -> Granted:
        """Tell what the stream is, and then send it."""
        if call.is_empty:
            raise RequestError(ErrorCode.BAD_REQUEST)
        stream = self._catalog.find(call.account, call.stream)
        request: SnapshotRequest = call.read(_SNAPSHOT_REQUEST)
        if not is_literal_subject(request.deliver_subject):
            raise RequestError(ErrorCode.SNAPSHOT_DELIVER_SUBJECT_INVALID)
        check_target(call, SendTarget.SNAPSHOT, request.deliver_subject)
        state = self._catalog.state(call.account, call.stream)
        described = describe_state(stream, state, consumers=self._catalog.consumer_count(call.account, call.stream))

        def send() -> Steps:
            return self._send_snapshot(call, request, described, state.last_sequence)

        return Granted(fields={"config": stream.config.to_json(), "state": described}, then=send)

    def _send_snapshot(self, call: Call, request: SnapshotRequest, state: dict[str, Any], last_sequence: int) -> Steps:
        """Have the engine send the stream, after passing it the consumers, in as many steps as that takes."""
        running = self._begin(call)
        begun = {"state": state, "client": running.client}
        self._advisories.tell_archive(call.account, "snapshot_create", call.stream, begun)
        kept = self._catalog.consumers.of(call.account, call.stream)
        consumers = [] if request.no_consumers else [kept[name] for name in kept.public_names]
        chunk_bytes = min(max(request.chunk_size or CHUNK_BYTES_DEFAULT, CHUNK_BYTES_MIN), CHUNK_BYTES_MAX)
        window_bytes = min(max(request.window_size or WINDOW_BYTES_DEFAULT, chunk_bytes), WINDOW_BYTES_MAX)
        snapshot_id = new_id()
        asked = {
            "id": snapshot_id,
            "deliver_subject": request.deliver_subject,
            "chunk_bytes": chunk_bytes,
            "window_bytes": window_bytes,
            "state": write_json(state | {"consumer_count": len(consumers)}).decode(),
            "last_sequence": last_sequence,
        }
        self._running[snapshot_id] = running
        try:
            self._engine.begin_snapshot(call.account, call.stream, msgspec.json.encode(asked))
            for start in range(0, len(consumers), CONSUMERS_PER_STEP):
                some = [
                    {"name": consumer.name, "config": write_json(consumer.config.to_json()).decode()}
                    for consumer in consumers[start : start + CONSUMERS_PER_STEP]
                ]
                self._engine.add_to_snapshot(snapshot_id, msgspec.json.encode(some))
                yield
            self._engine.send_snapshot(snapshot_id)
        except EngineError as error:
            del self._running[snapshot_id]
            failure = str(error.args[-1])
            header = f"NATS/1.0 500 {failure}\r\n\r\n".encode()
            self._publish(call.account, request.deliver_subject, b"", header)
            self._end_snapshot(running, failure)

    def _end_snapshot(self, running: _Running, failure: str) -> None:
        ended: dict[str, Any] = {"start": running.start, "end": time_text(self._clock()), "client": running.client}
        if failure:
            self._warn(f"Snapshot for stream '{running.account} > {running.stream}' failed: {failure}")
            ended["error"] = failure
        self._advisories.tell_archive(running.account, "snapshot_complete", running.stream, ended)

    def restore(self, call: Call) -> dict[str, Any]:
        """Answer where to send the archive, and receive it from then on."""
        if call.is_empty:
            raise RequestError(ErrorCode.BAD_REQUEST)
        context = self._catalog.context(call.account, self._settings())
        decision = restore_requests.begin(call.stream, call.body, context, is_strict=call.is_strict)
        config = decision.config
        self._catalog.check_online(call.account, call.stream)
        restore_id = new_id()
        subject = f"$JS.SNAPSHOT.RESTORE.{call.stream}.{restore_id}"
        check_stream_targets(call, config)
        asked_by = msgspec.structs.replace(call, body=b"")
        running = msgspec.structs.replace(self._begin(call), config=config, call=asked_by)
        asked = {
            "id": restore_id,
            "subject": subject,
            "spool_bytes_max": self._room(call.account, "file"),
            "stored_bytes_max": self._room(call.account, config.storage),
            "first_sequence": decision.first_sequence,
            "last_sequence": decision.last_sequence,
        }
        definition = Stream(config=config, created=running.start).definition
        # Before the engine may tell anything about it.
        self._running[restore_id] = running
        try:
            self._engine.start_restore(call.account, definition, msgspec.json.encode(asked))
        except EngineError as error:
            del self._running[restore_id]
            failure = str(error.args[-1])
            raise RequestError(ErrorCode.RESTORE_SUBSCRIBE_FAILED, subject=subject, err=failure) from error
        self._advisories.tell_archive(call.account, "restore_create", call.stream, {"client": running.client})
        return {"deliver_subject": subject}

    def account_of(self, event: ArchiveEvent) -> str | None:
        """Return the account that an event is about; None = the operation is gone. Any thread may ask."""
        running = self._running.get(event.id)
        return None if running is None else running.account

    def note(self, event: ArchiveEvent) -> Steps | None:
        """Deal with what the engine says about a snapshot or a restore; return what is left to do, step by step."""
        running = self._running.pop(event.id, None)
        if running is None:
            return None
        details = _DETAILS.decode(event.details)
        if event.kind == "snapshot_ended":
            self._end_snapshot(running, details.failure)
        elif event.kind == "restore_ready":
            return self._finish_restore(running, event.id, details)
        else:
            assert event.kind == "restore_failed", event.kind
            self._answer_restore(running, details, error=_error_of(running, details))
        return None

    def _finish_restore(self, running: _Running, restore_id: str, details: _Details) -> Steps:
        """Make the stream with its consumers, in as many steps as it takes."""
        try:
            stream = yield from self._make_restored(running, restore_id, details)
            state = self._catalog.state(running.account, running.stream)
        except RequestError as error:
            self._answer_restore(running, details, error=error)
            return
        if details.consumers_lost:
            self._warn(
                f"Restore for stream '{running.account} > {running.stream}': {details.consumers_lost} consumers are in "
                "the archive in a form from before nats-server 2.15, and are not restored: create them again"
            )
        self._advisories.tell_stream_action(running.account, running.stream, "create")
        fields = describe(stream, state, self._clock(), consumers=len(details.consumers))
        self._answer_restore(running, details, fields=fields)

    def _make_restored(self, running: _Running, restore_id: str, details: _Details) -> Generator[None, None, Stream]:
        """Return the stream when all of it is there. What was promised is the whole archive: else nothing is left.

        A server that stops closes the generator before its end.
        """
        account, config, call = running.account, running.config, running.call
        assert config is not None, "only restores become ready"
        assert call is not None, "restores know who asked for them"
        try:
            self._check_restore(running, config, details)
            consumers = yield from read_consumers(details.consumers, call, config, self._settings())
            # Others may have come meanwhile.
            self._check_restore(running, config, details)
            created = _created_text(details.created)
            stream = self._catalog.restore(account, config, restore_id, created=created)
        except BaseException:
            self._engine.cancel_restore(restore_id)
            raise
        try:
            yield from make_consumers(self._catalog.consumers, account, config, restore_id, consumers)
            self._catalog.serve_restored(restore_id)
        except BaseException:
            self._catalog.cancel_restore(account, config.name, restore_id)
            raise
        # All of it would survive a power cut now, so it stays, whatever comes.
        while self._catalog.consumers.begin_restored(account, config.name):
            yield
        self._catalog.end_restore(account, config.name)
        return stream

    def _check_restore(self, running: _Running, config: StreamConfig, details: _Details) -> None:
        """Raise `RequestError` unless the account may have this stream with its consumers."""
        settings = self._settings()
        limits = settings.accounts.get(running.account)
        if limits is None:
            raise RequestError(ErrorCode.NOT_ENABLED_FOR_ACCOUNT)
        restore_requests.check(config, self._catalog.context(running.account, settings))
        consumers_max = min((most for most in (config.max_consumers, limits.max_consumers) if most > 0), default=None)
        if consumers_max is not None and len(details.consumers) > consumers_max:
            raise RequestError(ErrorCode.MAXIMUM_CONSUMERS_LIMIT)

    def _answer_restore(
        self,
        running: _Running,
        details: _Details,
        *,
        fields: dict[str, Any] | None = None,
        error: RequestError | None = None,
    ) -> None:
        if error is not None:
            self._warn(f"Restore for stream '{running.account} > {running.stream}' failed: {error}")
        if not details.stalled:
            end = time_text(self._clock())
            ended = {"start": running.start, "end": end, "bytes": details.bytes, "client": running.client}
            self._advisories.tell_archive(running.account, "restore_complete", running.stream, ended)
        if details.reply:
            kind = "stream_create_response"
            body = replies.failure(kind, error) if error is not None else replies.success(kind, fields or {})
            self._publish(running.account, details.reply, body)

    def _begin(self, call: Call) -> _Running:
        return _Running(
            account=call.account,
            stream=call.stream,
            start=time_text(self._clock()),
            client=self._advisories.describe_client(call.account, call.connection_id),
        )

    def _room(self, account: str, storage: str) -> int:
        """Return how many bytes more may be stored, by this account and by all."""
        settings = self._settings()
        limits = self._catalog.context(account, settings)
        used = {each: self._accounts.usage(each) for each in {account, *self._catalog.accounts}}
        if storage == "memory":
            own = (limits.account.max_memory, used[account].memory)
            all_together = (limits.server.max_memory, sum(each.memory for each in used.values()))
        else:
            own = (limits.account.max_storage, used[account].storage)
            all_together = (limits.server.max_storage, sum(each.storage for each in used.values()))
        rooms = [max(most - held, 0) for most, held in (own, all_together) if most >= 0]
        return min(rooms, default=UNLIMITED_BYTES)

    def _publish(self, account: str, subject: str, body: bytes, header: bytes | None = None) -> None:
        try:
            self._engine.publish(account, subject, body, header=header)
        except EngineError:
            # A subject one cannot publish to; its owner will notice.
            return


def _error_of(running: _Running, details: _Details) -> RequestError:
    if details.exceeded:
        is_memory = running.config is not None and running.config.storage == "memory"
        return RequestError(ErrorCode.MEMORY_RESOURCES_EXCEEDED if is_memory else ErrorCode.STORAGE_RESOURCES_EXCEEDED)
    if details.taken:
        return RequestError(ErrorCode.STREAM_NAME_EXIST_RESTORE_FAILED)
    return RequestError(ErrorCode.STREAM_RESTORE, err=details.failure)


def _created_text(text: str) -> str:
    """Return a timestamp of an archive as answers show it; empty if it is not one."""
    try:
        return time_text(Timestamp.read(text).unix_ns)
    except TimestampError:
        return ""
