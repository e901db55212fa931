"""The endpoints of consumers: create, names, list, info, delete, pause, unpin, reset.

Each reads: parse the request, decide, act, answer. What one returns are the fields of its answer; what it refuses it
raises as `RequestError`. Delivering and acknowledging is the engine's.

Invariant: nothing has changed when an `RequestError` is raised.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec

from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.consumers import requests as consumer_requests
from jetlake.management.consumers.info import describe_consumer, pause_remaining_ns
from jetlake.management.consumers.requests import CREATE_REQUEST, ConsumerSubject, CreateRequest
from jetlake.management.consumers.required_level import with_required_consumer_level
from jetlake.management.consumers.state import ConsumerState
from jetlake.management.consumers.stream_consumers import Consumer
from jetlake.management.consumers.update import paused
from jetlake.management.consumers.validation import GROUP_NAME
from jetlake.management.engine.protocols import ConsumerEvent, EnginePublisher
from jetlake.management.requests.advisories import Advisories
from jetlake.management.requests.calls import Call, Granted
from jetlake.management.requests.rights import check_consumer_targets
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.stream import Stream
from jetlake.management.subjects.names import hash8
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_dialect import read_one, read_request
from jetlake.management.wire.json_types import Integer, Record, RecordField, Text, Time
from jetlake.management.wire.paging import DESCRIPTIONS_MAX, NAMES_MAX, ListPage, page_of
from jetlake.management.wire.replies import ZERO_TIME
from jetlake.management.wire.times import Timestamp

NANOSECONDS_PER_SECOND = 1_000_000_000

IDENTITY_KEY = "Nats-Stream-Identity"
"""The server that copies a stream says with this header which one it means; the reply says which one it is."""


class ConsumerListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the list of consumers the answer begins."""

    offset: int = 0


class PauseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Until when a consumer is to pause."""

    pause_until: Timestamp | None = None


class UnpinRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The group of a consumer that must choose another client."""

    group: str = ""


class ResetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The sequence at which a consumer restarts; 0 = after the acknowledged ones."""

    seq: int = 0


_OFFSET = RecordField("offset", Integer("int", -(2**63), 2**63 - 1))
_LIST_REQUEST = Record("server.JSApiConsumersRequest", ConsumerListRequest, (_OFFSET,), can_be_absent=False)
_PAUSE_REQUEST = Record(
    "server.JSApiConsumerPauseRequest", PauseRequest, (RecordField("pause_until", Time()),), can_be_absent=False
)
_UNPIN_REQUEST = Record(
    "server.JSApiConsumerUnpinRequest", UnpinRequest, (RecordField("group", Text()),), can_be_absent=False
)
_RESET_REQUEST = Record(
    "server.JSApiConsumerResetRequest",
    ResetRequest,
    (RecordField("seq", Integer("uint64", 0, 2**64 - 1)),),
    can_be_absent=False,
)


class ConsumerEndpoints:
    """The endpoints, with what they work on. `settings` returns those in force."""

    def __init__(
        self,
        engine: EnginePublisher,
        catalog: StreamCatalog,
        advisories: Advisories,
        settings: Callable[[], ManagementSettings],
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._advisories = advisories
        self._settings = settings
        self._clock = clock

    def create(self, call: Call) -> Granted:
        """Make or change the consumer, by the forms of the subject that do not say that it is durable."""
        name, _, subject_filter = call.names[1].partition(".") if len(call.names) > 1 else ("", "", "")
        return self._create(call, ConsumerSubject(stream=call.stream, name=name, filter=subject_filter))

    def create_durable(self, call: Call) -> Granted:
        """Make or change the consumer, by the form of the subject that says that it is durable."""
        return self._create(call, ConsumerSubject(stream=call.stream, name=call.names[1], is_durable=True))

    def names(self, call: Call) -> dict[str, Any]:
        """Return the names."""
        page = self._page(call, NAMES_MAX)
        return {**page.fields, "consumers": list(page.items)}

    def list_all(self, call: Call) -> dict[str, Any]:
        """Return the descriptions."""
        page = self._page(call, DESCRIPTIONS_MAX)
        offline = self._catalog.consumers.offline_of(call.account, call.stream)
        consumers = self._catalog.consumers.of(call.account, call.stream)
        descriptions = []
        for name in page.items:
            consumer = consumers.get(name)
            if consumer is None:
                continue
            try:
                described = self._describe(call, consumer, shows_versions=False)
            except RequestError:
                # It goes while it is looked at: lists overtake requests that change something.
                continue
            descriptions.append(described)
        answer = {**page.fields, "consumers": descriptions}
        missing = {name: offline[name] for name in page.items if name in offline}
        return {**answer, "missing": list(missing), "offline": missing} if missing else answer

    def info(self, call: Call) -> dict[str, Any]:
        """Return the description of one consumer."""
        return self._describe(call, self._find(call))

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete the consumer."""
        call.check_empty()
        consumer = self._find(call)
        self._delete(call.account, call.stream, consumer.name)
        return {"success": True}

    def pause(self, call: Call) -> dict[str, Any]:
        """Have the consumer deliver nothing until a moment, or go on at once."""
        request: PauseRequest = call.read_optional(_PAUSE_REQUEST)
        consumer = self._find(call)
        until = None if request.pause_until is None or request.pause_until.is_zero else request.pause_until
        config = with_required_consumer_level(paused(consumer.config, until))
        if config != consumer.config:
            failure = ErrorCode.CONSUMER_STORE_FAILED
            self._catalog.consumers.update(call.account, call.stream, consumer.name, config, failure)
            self._advisories.tell_pause(call.account, call.stream, consumer.name, config.pause_until)
        answer: dict[str, Any] = {"paused": False, "pause_until": ZERO_TIME}
        if config.pause_until is not None:
            answer["pause_until"] = config.pause_until.text
        remaining_ns = pause_remaining_ns(config, self._clock())
        return {**answer, "paused": True, "pause_remaining": remaining_ns} if remaining_ns else answer

    def unpin(self, call: Call) -> dict[str, Any]:
        """Have a group of clients choose another client to serve."""
        request = _read_unpin(call)
        consumer = self._find(call)
        if request.group not in (consumer.config.priority_groups or ()):
            raise RequestError(ErrorCode.CONSUMER_INVALID_PRIORITY_GROUP)
        self._catalog.consumers.unpin(call.account, call.stream, consumer.name)
        return {}

    def reset(self, call: Call) -> dict[str, Any] | Granted:
        """Have the consumer begin again, and forget what was delivered since."""
        consumer = self._find(call)
        # Never strict: unknown keys are overlooked.
        request: ResetRequest = read_one(_RESET_REQUEST, call.body).value if call.body else ResetRequest()
        self._check_reset(call, consumer, request.seq)
        sequence = self._catalog.consumers.reset(call.account, call.stream, consumer.name, request.seq)
        fields = {**self._describe(call, consumer), "reset_seq": sequence}
        if call.header_value(IDENTITY_KEY) is None:
            return fields
        return Granted(fields=fields, header=_identity_header(self._catalog.find(call.account, call.stream)))

    def is_there(self, call: Call) -> bool:
        """Return whether there is such a consumer: a reset of any other is not answered."""
        return call.names[1] in self._catalog.consumers.of(call.account, call.stream)

    def note(self, event: ConsumerEvent) -> None:
        """Delete an unused consumer."""
        if event.name in self._catalog.consumers.of(event.account, event.stream):
            self._delete(event.account, event.stream, event.name)

    @property
    def are_pausing(self) -> bool:
        """Whether any consumer pauses. Any thread may ask."""
        return self._catalog.consumers.are_pausing

    def pause_wait_s(self) -> float | None:
        """Return how long it is until a pause ends; None = no consumer pauses."""
        end_ns = self._catalog.consumers.next_pause_end_ns()
        return None if end_ns is None else max(end_ns - self._clock(), 0) / NANOSECONDS_PER_SECOND

    def tell_ended_pauses(self) -> None:
        """Tell that consumers go on whose pause has ended."""
        for account, stream, consumer in self._catalog.consumers.take_ended_pauses():
            self._advisories.tell_pause(account, stream, consumer.name, consumer.config.pause_until)

    def make(self, call: Call) -> Granted:
        """Make or change a consumer, by its name if the call has one, and return when it would survive a power cut."""
        granted = self.create_durable(call) if len(call.names) > 1 else self.create(call)
        if granted.created is not None:
            account, stream, name = granted.created
            refused = self.commit(account, stream, [name])
            if name in refused:
                raise refused[name]
        return granted

    def commit(self, account: str, stream: str, names: Sequence[str]) -> dict[str, RequestError]:
        """Make the created consumers durable, all at once, and report them. Return those that could not be."""
        refused = self._catalog.consumers.commit(account, stream, names)
        for name in names:
            if name not in refused:
                self._advisories.tell_consumer_action(account, stream, name, "create")
        return refused

    def _create(self, call: Call, subject: ConsumerSubject) -> Granted:
        request = _read_create(call.body, call.is_strict)
        config = consumer_requests.named(subject, request)
        stream = self._catalog.find(call.account, call.stream)
        context = self._catalog.consumer_context(
            call.account, call.stream, self._settings(), partial(self._engine.has_interest, call.account)
        )
        config = consumer_requests.for_copying(config, context)
        if config.is_internal:
            _check_identity(call, stream)
        self._catalog.consumers.check_online(call.account, call.stream, config.name)
        decision = consumer_requests.decide(config, request, context)
        check_consumer_targets(call, decision.config)
        state = created = None
        if decision.current is None:
            consumer, state = self._catalog.consumers.create(call.account, call.stream, decision.name, decision.config)
            created = (call.account, call.stream, consumer.name)
        elif decision.is_unchanged:
            consumer = decision.current
        else:
            consumer = self._catalog.consumers.update(call.account, call.stream, decision.name, decision.config)
        if decision.current is not None and config.sourcing:
            # The server that copies the stream asks again because it has lost the messages in flight.
            self._catalog.consumers.reset(call.account, call.stream, consumer.name, 0)
        header = _identity_header(stream) if config.is_internal else None
        fields = self._describe(call, consumer, state)
        return Granted(fields=fields, header=header, created=created, then=self._tell_if_paused(call, consumer))

    def _tell_if_paused(self, call: Call, consumer: Consumer) -> Callable[[], None] | None:
        if not pause_remaining_ns(consumer.config, self._clock()):
            return None
        until = consumer.config.pause_until
        return partial(self._advisories.tell_pause, call.account, call.stream, consumer.name, until)

    def _delete(self, account: str, stream: str, name: str) -> None:
        self._catalog.consumers.delete(account, stream, name)
        self._advisories.tell_consumer_action(account, stream, name, "delete")

    def _find(self, call: Call) -> Consumer:
        self._catalog.find(call.account, call.stream)
        return self._catalog.consumers.find(call.account, call.stream, call.names[1])

    def _describe(
        self, call: Call, consumer: Consumer, state: ConsumerState | None = None, *, shows_versions: bool = True
    ) -> dict[str, Any]:
        state = state or self._catalog.consumers.state(call.account, call.stream, consumer.name)
        return describe_consumer(call.stream, consumer, state, self._clock(), shows_versions=shows_versions)

    def _page(self, call: Call, limit: int) -> ListPage[str]:
        request: ConsumerListRequest = call.read_optional(_LIST_REQUEST)
        self._catalog.find(call.account, call.stream)
        names = self._catalog.consumers.of(call.account, call.stream).public_names
        offline = self._catalog.consumers.offline_of(call.account, call.stream)
        return page_of(sorted([*names, *offline]) if offline else names, request.offset, limit)

    def _check_reset(self, call: Call, consumer: Consumer, sequence: int) -> None:
        """Raise `RequestError` for a sequence at which the consumer could never have started."""
        config = consumer.config
        if sequence == 0 or config.deliver_policy == "all":
            return
        if config.deliver_policy == "by_start_sequence":
            problem = "below start seq" if sequence < config.opt_start_seq else ""
        elif config.deliver_policy == "by_start_time":
            assert config.opt_start_time is not None, "no consumer of this policy is made without"
            first = self._catalog.consumers.first_sequence_at(call.account, call.stream, config.opt_start_time.unix_ns)
            problem = "below start time" if sequence < first else ""
        else:
            problem = "not allowed"
        if problem:
            raise RequestError(ErrorCode.CONSUMER_INVALID_RESET, err=problem)


def check_create(call: Call) -> None:
    """Raise `RequestError` unless the body can be read. This is asked before anything else."""
    _read_create(call.body, call.is_strict)


@lru_cache(maxsize=1)
def _read_create(body: bytes, is_strict: bool) -> CreateRequest:
    """Return what a body says; it is asked for twice in a row, and reading it is half of the work of a create."""
    request: CreateRequest = read_request(CREATE_REQUEST, body, is_strict=is_strict).value
    return request


def check_unpin(call: Call) -> None:
    """Raise `RequestError` unless the body names a group. This is asked before the account is looked at."""
    _read_unpin(call)


def _read_unpin(call: Call) -> UnpinRequest:
    # Never strict: unknown keys are overlooked.
    request: UnpinRequest = read_one(_UNPIN_REQUEST, call.body).value
    if not request.group:
        raise RequestError(ErrorCode.INVALID_JSON, err="consumer group not specified")
    if GROUP_NAME.fullmatch(request.group) is None:
        raise RequestError(ErrorCode.CONSUMER_INVALID_GROUP_NAME)
    return request


def _identity_of(stream: Stream) -> str:
    """Return what tells a stream from one of the same name that was there before or will be."""
    return hash8(stream.created)


def _identity_header(stream: Stream) -> bytes:
    return f"NATS/1.0\r\n{IDENTITY_KEY}: {_identity_of(stream)}\r\n\r\n".encode()


def _check_identity(call: Call, stream: Stream) -> None:
    if call.header_value(IDENTITY_KEY) not in (None, "", _identity_of(stream)):
        raise RequestError(ErrorCode.CONSUMER_STREAM_IDENTITY_MISMATCH, msg=_identity_of(stream))
