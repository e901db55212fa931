"""Create and update of consumers, from the bytes of the request to the configuration to keep.

| subject                   | the consumer's name                              | durable_name               |
|---------------------------|--------------------------------------------------|----------------------------|
| `CREATE.<s>`              | the one in the configuration, or one made up     | must not be set            |
| `CREATE.<s>.<c>`          | `<c>`, whatever the configuration says           | `<c>`, or not set          |
| `CREATE.<s>.<c>.<filter>` | as above; the filter is that of the configuration |                            |
| `DURABLE.CREATE.<s>.<c>`  | `<c>`                                            | must be set, and be `<c>`  |

Everything here is decided without the engine.

Invariant: `decide` returns or raises `RequestError`, whatever the request.
"""

import secrets

import msgspec

from jetlake.management.consumers.config import CONSUMER_CONFIG, ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.consumers.defaults import with_defaults, with_inactive_threshold
from jetlake.management.consumers.options import check_options
from jetlake.management.consumers.required_level import with_required_consumer_level
from jetlake.management.consumers.stream_consumers import Consumer
from jetlake.management.consumers.update import updated
from jetlake.management.consumers.validation import check_config, check_new
from jetlake.management.subjects.names import NAME_BYTES_MAX, hash8
from jetlake.management.wire.api_level import REQUIRED_LEVEL_KEY
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_types import Boolean, Choice, Record, RecordField, Text

STORE_FAILED = "error creating store for consumer"
"""What nats-server says of a name or a moment that its files cannot hold."""


class CreateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Of which stream a consumer is wanted, what it should be like, and whether it may be there already."""

    stream_name: str = ""
    config: ConsumerConfig = ConsumerConfig()
    # Empty = either.
    action: str = ""
    pedantic: bool = False


class ConsumerSubject(msgspec.Struct, frozen=True, kw_only=True):
    """What the subject of a request says."""

    stream: str
    # Empty = the oldest form, which has none.
    name: str = ""
    filter: str = ""
    is_durable: bool = False


class ConsumerDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What a request leads to: a consumer to make, one to change, or one that is there already."""

    name: str
    config: ConsumerConfig
    current: Consumer | None = None

    @property
    def is_unchanged(self) -> bool:
        return self.current is not None and self.current.config == self.config


CREATE_REQUEST = Record(
    "server.CreateConsumerRequest",
    CreateRequest,
    (
        RecordField("stream_name", Text()),
        RecordField("config", CONSUMER_CONFIG),
        RecordField("action", Choice({word: word for word in ("", "create", "update")}, "", unknown="consumer action")),
        RecordField("pedantic", Boolean()),
    ),
    can_be_absent=False,
)


def named(subject: ConsumerSubject, request: CreateRequest) -> ConsumerConfig:
    """Return the configuration with the name that the subject gives it, or raise `RequestError`.

    This is asked before the stream is looked for.
    """
    config = request.config
    if subject.stream != request.stream_name:
        raise RequestError(ErrorCode.STREAM_MISMATCH)
    if {"/", "\\"} & set(subject.name or config.name):
        raise RequestError(ErrorCode.CONSUMER_NAME_CONTAINS_PATH_SEPARATORS)
    if subject.is_durable and not config.durable_name:
        raise RequestError(ErrorCode.CONSUMER_DURABLE_NAME_NOT_SET)
    if subject.name and config.durable_name not in ("", subject.name):
        raise RequestError(ErrorCode.CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT)
    if not subject.name and config.durable_name:
        raise RequestError(ErrorCode.CONSUMER_EPHEMERAL_WITH_DURABLE_NAME)
    if subject.filter and config.filter_subjects:
        raise RequestError(ErrorCode.CONSUMER_MULTIPLE_FILTERS_NOT_ALLOWED)
    if subject.filter and subject.filter != config.filter_subject:
        raise RequestError(ErrorCode.CONSUMER_CREATE_FILTER_SUBJECT_MISMATCH)
    if config.num_replicas > 1:
        raise RequestError(ErrorCode.STREAM_REPLICAS_NOT_SUPPORTED)
    return msgspec.structs.replace(config, name=subject.name or config.name)


def for_copying(config: ConsumerConfig, context: ConsumerContext) -> ConsumerConfig:
    """Return the configuration of a consumer for a stream that copies this one.

    Where messages go once they are acknowledged, a copy must acknowledge: its consumer stays, under the name it asks
    for. Elsewhere every connection makes one of its own.
    """
    if not (config.direct and config.sourcing and config.name):
        return config
    if context.stream.retention == "limits":
        return msgspec.structs.replace(config, name=f"{config.name}-{new_name()}")
    return msgspec.structs.replace(
        config,
        direct=False,
        durable_name=config.name,
        ack_policy="flow_control",
        ack_wait=0,
        max_deliver=0,
        inactive_threshold=0,
    )


def decide(config: ConsumerConfig, request: CreateRequest, context: ConsumerContext) -> ConsumerDecision:
    """Decide a request whose configuration is `named`."""
    # A durable name is the same as the name, or is refused below.
    current = context.consumers.get(config.name)
    config = with_required_consumer_level(config if current is None else _kept(config, current.config))
    config = with_defaults(config, context, is_pedantic=request.pedantic)
    check_config(config, context)
    check_options(config)
    if current is not None:
        if request.action == "create" and not _are_alike(current.config, config):
            raise RequestError(ErrorCode.CONSUMER_ALREADY_EXISTS)
        return ConsumerDecision(name=current.name, config=updated(current, config, context), current=current)
    if request.action == "update":
        raise RequestError(ErrorCode.CONSUMER_DOES_NOT_EXIST)
    check_new(config, context)
    name = config.durable_name or config.name or _free_name(context)
    check_stored(name, config, context)
    return ConsumerDecision(name=name, config=with_inactive_threshold(config, is_durable=config.is_durable))


def new_name() -> str:
    """Return a name that nobody else has."""
    return hash8(secrets.token_hex(16))


def _kept(config: ConsumerConfig, current: ConsumerConfig) -> ConsumerConfig:
    """Return the configuration with what a request for an existing consumer cannot change."""
    config = msgspec.structs.replace(config, pause_until=current.pause_until)
    if not (config.sourcing and config.is_durable):
        return config
    return msgspec.structs.replace(
        config,
        deliver_policy=current.deliver_policy,
        opt_start_seq=current.opt_start_seq,
        opt_start_time=current.opt_start_time,
    )


def _are_alike(current: ConsumerConfig, wanted: ConsumerConfig) -> bool:
    """Return whether two configurations are the same but for the level they need of a server."""
    level = {REQUIRED_LEVEL_KEY: ""}
    first, second = (
        msgspec.structs.replace(each, metadata={**(each.metadata or {}), **level}) for each in (current, wanted)
    )
    return first == second


def _free_name(context: ConsumerContext) -> str:
    name = new_name()
    while name in context.consumers:
        name = new_name()
    return name


def check_stored(name: str, config: ConsumerConfig, context: ConsumerContext) -> None:
    """Raise `RequestError` for values that could not be stored on disk, and for times that no answer could hold."""
    moments = [moment for moment in (config.opt_start_time, config.pause_until) if moment is not None]
    # Direct consumers are not kept at all.
    is_on_disk = context.stream.storage == "file" and not (config.mem_storage or config.direct)
    is_file_name = len(name.encode()) <= NAME_BYTES_MAX and "\0" not in name
    if (is_on_disk and not is_file_name) or not all(moment.is_writable for moment in moments):
        raise RequestError(ErrorCode.CONSUMER_CREATE, err=STORE_FAILED)
