"""Where the server sends on behalf of a client, and what a request needs besides its own subject.

Otherwise a client that may create a consumer could send anything to subjects it must not publish to: by storing it, and
having it delivered there. `check_target` checks every such subject; the rule itself is one function, in
crates/engine/src/routing/targets.rs, and `SendTarget` lists the reasons to send.

Requests that nats-server does not know read or write the same things as requests of nats-server. They need the right to
those, too, so that a list of denied subjects written for nats-server works here: `check_equivalents`.

Invariant: a user gets no more here than on the wire; a requester that is not known is refused.
"""

import enum
import re
from collections.abc import Iterable

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.requests.calls import API_PREFIX, Call
from jetlake.management.streams.config import StreamConfig, StreamSource
from jetlake.management.streams.validation import DEAD_LETTERS_KEY
from jetlake.management.subjects.names import ANY_ONE
from jetlake.management.wire.error_codes import ErrorCode, RequestError

READING = ("STREAM.MSG.GET.{}", "DIRECT.GET.{}", "CONSUMER.CREATE.{}", "CONSUMER.CREATE.{}.>")
"""A user who may send one of these can read all of a stream."""

_PLACEHOLDER = re.compile(r"\{\{[^}]*\}\}|\$[0-9]+")


class SendTarget(enum.Enum):
    """Why the server sends to a subject that a user has named. The engine knows the same ones by the same words."""

    # The first two are checked by the engine, when the message arrives.
    REPLY = "reply subject"
    SCHEDULE = "schedule target"
    TRACE = "trace destination"
    DELIVER = "deliver subject"
    SNAPSHOT = "snapshot deliver subject"
    SCAN = "scan deliver subject"
    REPUBLISH = "republish destination"
    DEAD_LETTER = "dead letters"

    @property
    def is_for_sender(self) -> bool:
        """Whether the right to subscribe may be enough: what is sent is for the one who asks."""
        return self in (SendTarget.REPLY, SendTarget.DELIVER, SendTarget.SNAPSHOT, SendTarget.SCAN)

    @property
    def error_code(self) -> ErrorCode:
        match self:
            case SendTarget.DELIVER | SendTarget.SNAPSHOT:
                return ErrorCode.CONSUMER_CREATE
            case SendTarget.REPUBLISH | SendTarget.DEAD_LETTER:
                return ErrorCode.STREAM_INVALID_CONFIG
            case _:
                return ErrorCode.STREAM_GENERAL_ERROR


def check_target(call: Call, target: SendTarget, subject: str) -> None:
    """Raise `RequestError` unless the server may send to this subject, or pattern, for the requester."""
    if not subject or call.requester.may_send_to(target.value, subject):
        return
    needed = "neither publish nor subscribe is allowed" if target.is_for_sender else "publish is not allowed"
    raise RequestError(target.error_code, err=f"permissions violation for {target.value} {subject!r}: {needed}")


def check_consumer_targets(call: Call, config: ConsumerConfig) -> None:
    """Raise `RequestError` unless a consumer may deliver to where it is to."""
    check_target(call, SendTarget.DELIVER, config.deliver_subject)


def check_stream_targets(call: Call, config: StreamConfig, current: StreamConfig | None = None) -> None:
    """Raise `RequestError` unless the client may publish to wherever a stream sends, and read what it is a copy of.

    A stream that is there already, as `current` says, may go on copying what it copies.
    """
    if config.republish is not None:
        check_target(call, SendTarget.REPUBLISH, pattern_of(config.republish.dest or config.republish.src or ">"))
    if (config.metadata or {}).get(DEAD_LETTERS_KEY):
        check_target(call, SendTarget.DEAD_LETTER, f"dead.{config.name}.>")
    copied = _local_origins(current) if current is not None else frozenset()
    for origin in sorted(_local_origins(config) - copied):
        _check_reading(call, origin)


def check_equivalents(call: Call, subjects: Iterable[str]) -> None:
    """Raise `RequestError` unless the client may send these requests, whose subjects are given without `$JS.API`."""
    for subject in subjects:
        if not call.requester.may_publish(f"{API_PREFIX}{subject}"):
            reason = f"permissions violation: this needs the right to publish to '{API_PREFIX}{subject}'"
            raise RequestError(ErrorCode.STREAM_GENERAL_ERROR, err=reason)


def pattern_of(destination: str) -> str:
    """Return what a destination with placeholders can become."""
    tokens = _PLACEHOLDER.sub(ANY_ONE, destination).split(".")
    return ".".join(ANY_ONE if ANY_ONE in token else token for token in tokens)


def _check_reading(call: Call, stream: str) -> None:
    """Raise `RequestError` unless the client may read a stream of its account in any way."""
    needed = [f"{API_PREFIX}{request.format(stream)}" for request in READING]
    if not any(call.requester.may_publish(subject) for subject in needed):
        reason = f"permissions violation for origin {stream!r}: this needs the right to publish to '{needed[0]}'"
        raise RequestError(ErrorCode.STREAM_GENERAL_ERROR, err=reason)


def _local_origins(config: StreamConfig) -> frozenset[str]:
    """Return the streams of the same account that a stream copies; others are the operator's affair, by `remotes`."""
    origins: list[StreamSource] = [*(config.sources or ()), *([] if config.mirror is None else [config.mirror])]
    return frozenset(origin.name for origin in origins if origin.external is None)
