"""`$JS.API.STREAM.WHY.<stream>` and `$JS.API.CONSUMER.WHY.<stream>.<consumer>`: why messages move, or do not.

The answer is one or more reasons, the most important first, each with a code for programs, a sentence for people, and
the command that would change it, if there is one. nats-server does not know these requests.

Invariant: there is always at least one reason; asking changes nothing.
"""

import shlex
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.engine.failures import answered_as
from jetlake.management.engine.protocols import KeepingEngine
from jetlake.management.requests.calls import Call
from jetlake.management.streams.state import StreamState
from jetlake.management.streams.stream import Stream
from jetlake.management.streams.validation import DEAD_LETTERS_KEY
from jetlake.management.wire.error_codes import ErrorCode

SECOND_NS = 1_000_000_000
MINUTE_S = 60
HOUR_S = 3600


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why messages move or do not."""

    code: str
    text: str
    command: str = ""


class Hindrances(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine says of a consumer."""

    paused: bool
    ack_pending: int
    full_since_ns: int
    pending: int
    matching: int
    waiting: int
    push_bound: bool
    flow_stalled: bool
    rate_limited: bool
    queued: int
    parked: int
    next_again_ns: int
    given_up: int


class WhyEndpoints:
    """The endpoints, with what they look at."""

    def __init__(
        self, engine: KeepingEngine, catalog: StreamCatalog, *, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._clock = clock

    def of_stream(self, call: Call) -> dict[str, Any]:
        """Say why messages come into a stream, or do not."""
        stream = self._catalog.find(call.account, call.stream)
        state = self._catalog.state(call.account, call.stream)
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            hindrance = self._engine.stream_hindrance(call.account, call.stream)
        reasons = list(reasons_of_stream(stream, state, hindrance))
        return {"stream": call.stream, "reasons": msgspec.to_builtins(reasons)}

    def of_consumer(self, call: Call) -> dict[str, Any]:
        """Say why messages go out by a consumer, or do not."""
        stream = self._catalog.find(call.account, call.stream)
        name = call.names[1]
        consumer = self._catalog.consumers.find(call.account, call.stream, name)
        state = self._catalog.state(call.account, call.stream)
        with answered_as(ErrorCode.STREAM_GENERAL_ERROR):
            hindrance = self._engine.stream_hindrance(call.account, call.stream)
            told = self._engine.consumer_hindrances(call.account, call.stream, name)
        facts = msgspec.json.decode(told, type=Hindrances)
        reasons = list(reasons_of_consumer(stream, name, consumer.config, facts, state, self._clock()))
        if hindrance:
            reasons.append(Reason(code="disk", text=f"Nothing new can be stored: {hindrance}."))
        return {"stream": call.stream, "consumer": name, "reasons": msgspec.to_builtins(reasons)}


def reasons_of_stream(stream: Stream, state: StreamState, hindrance: str) -> Iterator[Reason]:
    """Yield why messages come in, or do not."""
    config = stream.config
    edit = f"nats stream edit {shlex.quote(config.name)}"
    if hindrance:
        yield Reason(code="disk", text=f"Publishes are refused: {hindrance}.", command="df -h")
    if config.sealed:
        yield Reason(code="sealed", text="The stream is sealed: it takes no messages, and that cannot be undone.")
        return
    if config.mirror is not None:
        yield Reason(code="mirror", text=f"The stream mirrors {config.mirror.name}: only its messages come in.")
    elif not config.subjects and not config.sources:
        yield Reason(code="no_subjects", text="The stream has no subjects.", command=f"{edit} --subjects '…'")
    refuses = config.discard == "new"
    for code, limit, value, flag in (
        ("max_msgs", config.max_msgs, state.messages, "--max-msgs"),
        ("max_bytes", config.max_bytes, state.bytes, "--max-bytes"),
    ):
        if 0 < limit <= value:
            effect = "new ones are refused" if refuses else "each new one pushes out the oldest"
            text = f"The limit {code} of {limit:,} is reached ({value:,}): {effect}."
            yield Reason(code=code, text=text, command=f"{edit} {flag} {2 * limit}")
    if not (hindrance or (refuses and 0 < config.max_msgs <= state.messages)):
        yield Reason(code="moves", text=f"The stream takes messages; it holds {state.messages:,}.")


def reasons_of_consumer(
    stream: Stream, name: str, config: ConsumerConfig, facts: Hindrances, state: StreamState, now_ns: int
) -> Iterator[Reason]:
    """Yield why messages go out, or do not; the most important comes first."""
    target = f"{shlex.quote(stream.config.name)} {shlex.quote(name)}"
    edit = f"nats consumer edit {target}"
    if facts.paused:
        until = config.pause_until.text if config.pause_until is not None else "later"
        yield Reason(
            code="paused",
            text=f"The consumer is paused until {until}; {facts.pending:,} messages wait.",
            command=f"nats consumer resume {target}",
        )
        return
    if facts.full_since_ns:
        since = _duration((now_ns - facts.full_since_ns) / SECOND_NS)
        yield Reason(
            code="max_ack_pending",
            text=(
                f"{facts.ack_pending:,} messages are with clients and not acknowledged, as many as max_ack_pending "
                f"allows, for {since}; {facts.pending:,} more wait. Acknowledge them, or allow more."
            ),
            command=f"{edit} --max-pending {2 * max(facts.ack_pending, 1)}",
        )
    yield from _reasons_of_receiver(config, facts, target)
    if not facts.pending and not facts.queued:
        if state.messages and not facts.matching:
            filters = ", ".join(config.filter_subjects or [config.filter_subject])
            text = f"None of the {state.messages:,} messages of the stream matches the filter {filters}."
            yield Reason(code="no_match", text=text, command=f"{edit} --filter '…'")
        else:
            text = f"Everything has been delivered; {facts.ack_pending:,} messages wait for their acknowledgement."
            yield Reason(code="caught_up", text=text)
    if facts.parked:
        text = f"{facts.parked:,} messages wait for others of their key to be acknowledged."
        yield Reason(code="key", text=text)
    if facts.ack_pending and not facts.full_since_ns and facts.next_again_ns > now_ns:
        wait = _duration((facts.next_again_ns - now_ns) / SECOND_NS)
        yield Reason(code="redelivery", text=f"The next message that is not acknowledged comes again in {wait}.")
    if facts.given_up:
        yield _given_up(stream, facts.given_up)
    if facts.pending and not facts.full_since_ns and (facts.waiting or (facts.push_bound and not facts.flow_stalled)):
        yield Reason(code="moves", text=f"Messages move; {facts.pending:,} are to come.")


def _reasons_of_receiver(config: ConsumerConfig, facts: Hindrances, target: str) -> Iterator[Reason]:
    waiting = facts.pending + facts.queued
    if config.is_pull:
        if not facts.waiting and waiting:
            text = f"No client is pulling. {waiting:,} messages are waiting."
            yield Reason(code="no_request", text=text, command=f"nats consumer next {target}")
        return
    if not facts.push_bound:
        group = f" in the group {config.deliver_group}" if config.deliver_group else ""
        yield Reason(
            code="no_subscriber",
            text=f"No client is subscribed to {config.deliver_subject}{group}. {waiting:,} messages are waiting.",
            command=f"nats sub {shlex.quote(config.deliver_subject)}"
            + (f" --queue {shlex.quote(config.deliver_group)}" if config.deliver_group else ""),
        )
    elif facts.flow_stalled:
        yield Reason(
            code="slow_subscriber",
            text=f"{config.deliver_subject} has a subscriber that is behind (flow control); {waiting:,} messages wait.",
        )
    elif facts.rate_limited:
        text = f"The rate limit of {config.rate_limit_bps:,} bits a second slows it down; {waiting:,} messages wait."
        yield Reason(code="rate_limit", text=text)


def _given_up(stream: Stream, count: int) -> Reason:
    text = f"{count:,} messages were delivered as often as max_deliver allows and are not delivered any more"
    dead = (stream.config.metadata or {}).get(DEAD_LETTERS_KEY)
    if dead:
        return Reason(code="given_up", text=f"{text}; see {dead}.", command=f"jetlake dead list {shlex.quote(dead)}")
    command = f"nats stream edit {shlex.quote(stream.config.name)} --metadata {DEAD_LETTERS_KEY}=DEAD"
    return Reason(code="given_up", text=f"{text}. A stream for dead letters would keep them apart.", command=command)


def _duration(seconds: float) -> str:
    if seconds < MINUTE_S:
        return f"{max(seconds, 0):.1f} s"
    if seconds < HOUR_S:
        return f"{seconds / MINUTE_S:.0f} min"
    return f"{seconds / HOUR_S:.1f} h"
