"""Every option of the format `jetlake`: its name, kind, default and meaning, in one table.

The page docs/reference/spark.md has a row for each entry, which a test compares. An option that is not in the table is
refused with the nearest name: a misspelled limit that is silently ignored costs more than an error.

Invariant: `parse` returns a value for every option of its side, of the kind that the table says.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from jetlake.errors import ConfigurationError
from jetlake.shared.durations import UNITS_NS, DurationUnits
from jetlake.suggestions import hint

__all__ = ["OPTIONS", "Option", "parse"]

Side = Literal["read", "write", "both"]
Kind = Literal["text", "list", "number", "size", "duration", "flag", "choice", "sequence", "time"]


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option. A default of None means that nothing is set."""

    name: str
    kind: Kind
    side: Side
    default: Any = None
    choices: tuple[str, ...] = ()
    lowest: int = 0
    meaning: str


def _connection(name: str, meaning: str, kind: Kind = "text", default: Any = "") -> Option:
    return Option(name=name, kind=kind, side="both", default=default, meaning=meaning)


OPTIONS = (
    _connection(
        "url",
        "Address of the server, or several with commas between; `server` is the same.",
        default="nats://127.0.0.1:4222",
    ),
    _connection("executorUrl", "Address that executors use, where it is not the driver's."),
    _connection("user", "Name of the user."),
    _connection("password", "Password of the user."),
    _connection("token", "Token, instead of a user."),
    _connection("nkeySeed", "Seed of an NKEY, or a file with it."),
    _connection("credentialsFile", "File with a user's JWT and seed; on every machine that connects."),
    _connection("tlsCa", "File of the authorities that sign the server's certificate; the system's if not given."),
    _connection("tlsCertificate", "File with the client's certificate."),
    _connection("tlsKey", "File with the client's key."),
    _connection("tlsFirst", "Begin with TLS, before the server's greeting.", kind="flag", default=False),
    _connection("inboxPrefix", "Where answers are sent; a user may be allowed only this.", default="_INBOX"),
    _connection("apiPrefix", "Where the API of streams is, such as `$JS.hub.API`.", default="$JS.API"),
    _connection("domain", "Domain of JetStream: the API is then `$JS.<domain>.API`."),
    Option(name="stream", kind="text", side="both", default="", meaning="Name of the stream."),
    Option(name="streams", kind="list", side="read", default=(), meaning="Names of several streams, with commas."),
    Option(
        name="streamsPattern",
        kind="text",
        side="read",
        default="",
        meaning="Regular expression of whole names; streams made later are read from their beginning.",
    ),
    Option(
        name="subjects",
        kind="list",
        side="read",
        default=(),
        meaning="Only messages on these subjects, with commas; `*` and `>` as usual. The server selects.",
    ),
    Option(
        name="startingSequence",
        kind="sequence",
        side="read",
        meaning='`earliest`, `latest`, a sequence, or JSON `{"ORDERS": 5}`. '
        "Queries that run on begin at latest, batches at earliest.",
    ),
    Option(
        name="startingTimestamp",
        kind="time",
        side="read",
        meaning="First moment, RFC 3339 or milliseconds since 1970; instead of startingSequence.",
    ),
    Option(
        name="startingTimestampStrategy",
        kind="choice",
        side="read",
        default="latest",
        choices=("latest", "error"),
        meaning="What to do when every message is older than startingTimestamp.",
    ),
    Option(
        name="endingSequence",
        kind="sequence",
        side="read",
        meaning="Batches only: `latest`, a sequence that is not included, or JSON by stream.",
    ),
    Option(
        name="endingTimestamp",
        kind="time",
        side="read",
        meaning="Batches only: messages from this moment on are not read; instead of endingSequence.",
    ),
    Option(
        name="maxRowsPerTrigger",
        kind="number",
        side="read",
        default=1_000_000,
        lowest=1,
        meaning="Rows of a micro-batch, at most; shared by several streams by what they have waiting.",
    ),
    Option(
        name="maxBytesPerTrigger",
        kind="size",
        side="read",
        default=128 * 1024 * 1024,
        lowest=1,
        meaning="Bytes of a micro-batch, at most; at least one message is read. By average sizes where the server "
        "has no plan.",
    ),
    Option(
        name="minRowsPerTrigger",
        kind="number",
        side="read",
        default=0,
        meaning="Wait for this many rows, or for maxTriggerDelay.",
    ),
    Option(
        name="maxTriggerDelay",
        kind="duration",
        side="read",
        default=900.0,
        meaning="How long minRowsPerTrigger may make rows wait, such as `30s` or `15m`.",
    ),
    Option(
        name="minPartitions",
        kind="number",
        side="read",
        lowest=1,
        meaning="Tasks that read in parallel, where there are rows enough; the cores of the driver if not given.",
    ),
    Option(
        name="maxRowsPerPartition",
        kind="number",
        side="read",
        default=5_000_000,
        lowest=1,
        meaning="Sequences of one task, at most.",
    ),
    Option(
        name="failOnDataLoss",
        kind="flag",
        side="read",
        default=True,
        meaning="Fail when messages are gone or damaged that were not read, or the stream was deleted and created "
        "again; otherwise continue after them. Messages that go while they are read count as not read if their number "
        "is not known.",
    ),
    Option(
        name="decode",
        kind="choice",
        side="read",
        default="none",
        choices=("none", "json"),
        meaning="`json` adds the column `value`: VARIANT, or what valueSchema says. NULL if it is not JSON.",
    ),
    Option(
        name="valueSchema",
        kind="text",
        side="read",
        default="",
        meaning="Fields of `value`, such as `id BIGINT, city STRING`; implies decode=json.",
    ),
    Option(
        name="decoder",
        kind="text",
        side="read",
        default="",
        meaning="A Python object `module:NAME` that makes the column `value` of payloads before Spark sees them, "
        "such as `jetlake.devices.columns:EVENTS`; valueSchema then chooses among its fields.",
    ),
    Option(
        name="decompress",
        kind="choice",
        side="read",
        default="none",
        choices=("none", "zlib", "snappy", "zstd"),
        meaning="How payloads are compressed; `zlib` reads gzip too, `snappy` both of its forms.",
    ),
    Option(
        name="badPayload",
        kind="choice",
        side="read",
        default="fail",
        choices=("fail", "null"),
        meaning="What a payload that does not decompress gives: an error, or NULL.",
    ),
    Option(
        name="transport",
        kind="choice",
        side="read",
        default="auto",
        choices=("auto", "scan", "files", "nats", "consumer", "direct_get"),
        meaning="How rows come: `scan` (Jetlake), `files` (Jetlake on the same host; auto tries them), `nats` (any "
        "server: `consumer` or `direct_get`, as a stream needs).",
    ),
    Option(
        name="pollTimeoutMs",
        kind="number",
        side="read",
        default=500,
        meaning="How long a query without new rows waits for one before it answers Spark.",
    ),
    Option(
        name="progressConsumer",
        kind="text",
        side="read",
        default="",
        meaning="Name of a consumer that shows in the tools of NATS how far the query is. Nothing depends on it.",
    ),
    Option(
        name="deleteOnCommit",
        kind="flag",
        side="read",
        default=False,
        meaning="Work queues: remove messages when the batch that read them is committed.",
    ),
    Option(
        name="subject",
        kind="text",
        side="write",
        default="",
        meaning="Where rows without a column `subject` go.",
    ),
    Option(
        name="guarantee",
        kind="choice",
        side="write",
        default="exactly-once",
        choices=("exactly-once", "at-least-once"),
        meaning="`exactly-once` stores a repeated batch once, see `commit`; `at-least-once` may store it again.",
    ),
    Option(
        name="commit",
        kind="choice",
        side="write",
        default="auto",
        choices=("auto", "staged", "ids"),
        meaning="How a query stores a micro-batch once: `staged` uploads it and stores it all at once, and the stream "
        "remembers which batches it has; it needs a Jetlake server and the option stream or subject. `ids` gives every "
        "message an id. `auto` is `staged` where it can be.",
    ),
    Option(
        name="msgIdColumn",
        kind="text",
        side="write",
        default="",
        meaning="Column with an id per row, instead of one made of the content.",
    ),
    Option(
        name="writeId",
        kind="text",
        side="write",
        default="",
        meaning="Name of a batch write: repeating it with the same name stores nothing twice.",
    ),
    Option(
        name="maxInflight",
        kind="number",
        side="write",
        default=4096,
        lowest=1,
        meaning="Messages of a task that are sent and not acknowledged, at most.",
    ),
    Option(
        name="maxInflightBytes",
        kind="size",
        side="write",
        default=8 * 1024 * 1024,
        lowest=1,
        meaning="Their bytes, at most.",
    ),
    Option(
        name="ackTimeoutMs",
        kind="number",
        side="write",
        default=30_000,
        lowest=1,
        meaning="How long a task waits without any acknowledgement before it fails.",
    ),
    Option(
        name="duplicateWindow",
        kind="choice",
        side="write",
        default="warn",
        choices=("warn", "refuse", "ignore"),
        meaning="What to do when the stream forgets ids sooner than an outage may last (one hour).",
    ),
    Option(
        name="allowPurge",
        kind="flag",
        side="write",
        default=False,
        meaning="Allow mode overwrite, which stores the new rows and then removes all older messages of the stream.",
    ),
    Option(
        name="ignoreExtraColumns",
        kind="flag",
        side="write",
        default=False,
        meaning="Pass over columns that are not part of a message.",
    ),
)
"""The table."""

OF_SPARK = {"path", "checkpointlocation", "queryname", "mergeschema", "serialization.format", "provider", "owner"}
"""Options that Spark adds by itself."""

CONTRADICTIONS = (
    ("startingSequence", "startingTimestamp"),
    ("endingSequence", "endingTimestamp"),
    ("domain", "apiPrefix"),
    ("decode", "decoder"),
)

SAME = {"server": "url"}
"""Other names of options: the rest of Jetlake says `server`, Spark's own sources say `url`."""

INSTEAD = {"subject": "to read, use `subjects`", "subjects": "to write, use `subject`"}
"""What is meant by an option of the other side."""

SIZE_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
DURATION_UNITS = DurationUnits({unit: UNITS_NS[unit] for unit in ("ms", "s", "m", "h")} | {"min": UNITS_NS["m"]})


def parse(given: Mapping[str, str], side: Literal["read", "write"]) -> dict[str, Any]:
    """Return the value of every option of a side. Raises `ConfigurationError`."""
    known = {option.name.lower(): option for option in OPTIONS if option.side in (side, "both")}
    lower = {SAME.get(name.lower(), name.lower()): str(value) for name, value in given.items()}
    for name in given:
        if SAME.get(name.lower(), name.lower()) not in known and name.lower() not in OF_SPARK:
            raise ConfigurationError(unknown(name, side))
    for one, other in CONTRADICTIONS:
        if lower.get(one.lower()) and lower.get(other.lower()):
            raise ConfigurationError(f"{one} and {other} contradict each other: give one of them")
    values = {
        option.name: value_of(option, lower[key]) if key in lower else option.default for key, option in known.items()
    }
    if values.get("domain"):
        values["apiPrefix"] = f"$JS.{values['domain']}.API"
    return values


def unknown(name: str, side: str) -> str:
    """Return what to say to an option that is not in the table, or not on this side of it."""
    every = {option.name.lower(): option for option in OPTIONS}
    meant = every.get(name.lower())
    if meant is not None:
        instead = INSTEAD.get(meant.name, "leave it out here")
        return f"`{meant.name}` is for {'writing' if meant.side == 'write' else 'reading'}; {instead}"
    here = [option.name for option in OPTIONS if option.side in (side, "both")]
    return f"there is no option {name!r} to {side} with{hint(name, here, 'docs/reference/spark.md lists them all')}"


def value_of(option: Option, text: str) -> Any:  # one line per kind
    """Return the value of one option as its kind says."""
    text = text.strip()
    match option.kind:
        case "text":
            return text
        case "list":
            return tuple(part.strip() for part in text.split(",") if part.strip())
        case "number":
            return at_least(option, whole(option, text))
        case "size":
            return at_least(option, size_bytes(option, text))
        case "duration":
            return duration_s(option, text)
        case "flag":
            if text.lower() not in ("true", "false"):
                raise ConfigurationError(f"{option.name} is {text!r}: it must be true or false")
            return text.lower() == "true"
        case "choice":
            if text.lower() not in option.choices:
                raise ConfigurationError(f"{option.name} is {text!r}: it must be one of {', '.join(option.choices)}")
            return text.lower()
        case "sequence":
            return sequence(option, text)
        case "time":
            return timestamp(option, text)


def at_least(option: Option, value: int) -> int:
    if value < option.lowest:
        raise ConfigurationError(f"{option.name} is {value}: it must be at least {option.lowest}")
    return value


def whole(option: Option, text: str) -> int:
    if not text.replace("_", "").isdigit():
        raise ConfigurationError(f"{option.name} is {text!r}: it must be a whole number")
    return int(text)


def size_bytes(option: Option, text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([kmg]?)i?b?", text.lower())
    if found is None:
        raise ConfigurationError(f"{option.name} is {text!r}: write bytes, or a size such as 256m or 1g")
    return int(found[1]) * SIZE_UNITS[found[2]]


def duration_s(option: Option, text: str) -> float:
    word = text.lower().rstrip()
    # A bare number is seconds.
    found_ns = DURATION_UNITS.single_ns(word if word[-1:].isalpha() else f"{word}s")
    if found_ns is None:
        raise ConfigurationError(f"{option.name} is {text!r}: write a duration such as 500ms, 30s or 15m")
    return float(found_ns / UNITS_NS["s"])


def sequence(option: Option, text: str) -> str | int | dict[str, str | int]:
    """Return `earliest`, `latest`, a sequence, or one of these by stream."""
    if text.startswith("{"):
        try:
            by_stream = msgspec.json.decode(text.encode(), type=dict[str, int | str])
        except msgspec.DecodeError as error:
            raise ConfigurationError(f'{option.name} is {text!r}: {error}; write it like {{"ORDERS": 5}}') from error
        return {stream: _one_sequence(option, str(value)) for stream, value in by_stream.items()}
    return _one_sequence(option, text)


def _one_sequence(option: Option, text: str) -> str | int:
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    if not text.isdigit() or int(text) < 1:
        raise ConfigurationError(f"{option.name} is {text!r}: it must be earliest, latest or a sequence from 1 on")
    return int(text)


def timestamp(option: Option, text: str) -> str:
    """Return a timestamp as RFC 3339 in UTC."""
    if text.isdigit():
        seconds, milliseconds = divmod(int(text), 1000)
        try:
            return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03}Z"
        except (OSError, OverflowError, ValueError) as error:
            raise ConfigurationError(f"{option.name} is {text!r}: too many milliseconds for a date") from error
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d)(\.\d{1,9})?)?\s*(Z|[+-]\d\d:\d\d)?", text)
    try:
        if found is None:
            raise ValueError(text)
        zone = (found[4] or "Z").replace("Z", "+00:00")
        whole_seconds = datetime.fromisoformat(f"{found[1]}T{found[2] or '00:00:00'}{zone}").astimezone(UTC)
    except ValueError as error:
        raise ConfigurationError(
            f"{option.name} is {text!r}: write 2026-01-31T12:00:00Z, or milliseconds since 1970"
        ) from error
    return f"{whole_seconds:%Y-%m-%dT%H:%M:%S}{found[3] or ''}Z"
