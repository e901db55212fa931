"""The stream of events: made as the bundle makes it, or checked.

A service that publishes into a stream which does not listen to its subjects would lose each event after a time-out, so
it refuses to start instead: the documentation's first example, `events.*`, is such a stream.
"""

from typing import Any
from uuid import UUID

from jetlake.client.api import Api
from jetlake.devices.subjects import ALL, AggregateKey, Family
from jetlake.errors import ApiError, ConfigurationError

STREAM = "EVENTS"
DEAD_STREAM = "EVENTS_DEAD"

DUPLICATE_WINDOW_NS = 600_000_000_000
"""Ten minutes, as in the bundle: longer than a publisher retries."""

SERVER_VERSION_MIN = (2, 3)
"""The first with JetStream as the documentation demands it."""

STORE_VERSION_MIN = (2, 11)
"""The first to check the last sequence of a whole aggregate (`Nats-Expected-Last-Subject-Sequence-Subject`)."""

_SAMPLE_ID = str(UUID(int=0))
SAMPLES = (
    AggregateKey(_SAMPLE_ID, Family.LINKS).subject("resourcelinkspublished"),
    AggregateKey(_SAMPLE_ID, Family.METADATA).subject("devicemetadataupdated"),
    AggregateKey(_SAMPLE_ID, Family.RESOURCES, _SAMPLE_ID).subject("resourcechanged"),
)
"""One subject of each family."""


def stream_config(name: str = STREAM) -> dict[str, Any]:
    """Return the configuration of the stream: everything is kept, for ever."""
    return {
        "name": name,
        "subjects": [ALL],
        "retention": "limits",
        "max_consumers": -1,
        "max_msgs_per_subject": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msg_size": -1,
        "storage": "file",
        "discard": "old",
        "num_replicas": 1,
        "duplicate_window": DUPLICATE_WINDOW_NS,
        "allow_direct": True,
    }


def dead_stream_config(stream: str = STREAM, name: str = DEAD_STREAM) -> dict[str, Any]:
    """Return the configuration of the stream that keeps what could not be read."""
    return {
        "name": name,
        "subjects": [f"dead.{stream}.>"],
        "storage": "file",
        "num_replicas": 1,
        "duplicate_window": DUPLICATE_WINDOW_NS,
    }


async def ensure_streams(api: Api) -> str:
    """Make the streams of events and of dead letters unless there are some, and return the name of the first."""
    if await _listening(api, ALL):
        stream = await find_stream(api)
    else:
        stream = str((await _create(api, stream_config()))["config"]["name"])
    if not await _listening(api, f"dead.{stream}.>"):
        await _create(api, dead_stream_config(stream))
    return stream


async def find_stream(api: Api) -> str:
    """Return the stream that listens to all subjects of the bus. Raises `ConfigurationError` if there is none."""
    per_sample = [set(await _listening(api, sample)) for sample in SAMPLES]
    found = sorted(set.intersection(*per_sample))
    if not found:
        others = [
            f"stream {stream['config']['name']} listens on {', '.join(stream['config'].get('subjects') or ['nothing'])}"
            for stream in await api.streams(ALL)
        ]
        why = f": {'; '.join(others)}, which does not match {SAMPLES[-1]}" if others else ""
        raise ConfigurationError(
            f"no stream is listening on the subjects of the device event bus{why}; "
            f"create one with the subject {ALL}: jetlake stream add {STREAM} --subjects '{ALL}'"
        )
    return found[0]


async def check_store(api: Api, stream: str) -> None:
    """Raise `ConfigurationError` for a stream that would forget events or a server that cannot guard versions."""
    check_version(api.connection.connected_server_version, STORE_VERSION_MIN, "the event store")
    config = (await api.request(f"STREAM.INFO.{stream}"))["config"]
    if config.get("retention", "limits") != "limits":
        raise ConfigurationError(
            f"stream {stream} has retention {config['retention']} and would drop events that consumers have read: "
            "use retention limits"
        )
    if config.get("max_msgs_per_subject", -1) > 0:
        raise ConfigurationError(
            f"stream {stream} keeps {config['max_msgs_per_subject']} messages per subject: an event store keeps all; "
            "remove the limit"
        )


def check_version(version: Any, least: tuple[int, int], what: str) -> None:
    """Refuse a server that is too old. Raises `ConfigurationError`."""
    if (version.major, version.minor) < least:
        raise ConfigurationError(
            f"the server is version {version.major}.{version.minor}.{version.patch}: "
            f"{what} needs {least[0]}.{least[1]} or newer"
        )


async def _listening(api: Api, subject: str) -> list[str]:
    return await api.stream_names(subject)


async def _create(api: Api, config: dict[str, Any]) -> dict[str, Any]:
    try:
        return await api.request(f"STREAM.CREATE.{config['name']}", config)
    except ApiError as error:
        raise ConfigurationError(f"cannot create stream {config['name']}: {error}") from error
