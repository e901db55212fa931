"""The stream of events: made, found, and refused if it cannot work."""

from types import SimpleNamespace

import pytest

from jetlake.devices.stream import (
    DEAD_STREAM,
    SERVER_VERSION_MIN,
    STREAM,
    check_store,
    check_version,
    ensure_streams,
    find_stream,
)
from jetlake.errors import ConfigurationError


async def test_streams_are_made_once(api):
    assert await ensure_streams(api) == STREAM
    assert await ensure_streams(api) == STREAM

    assert await api.stream_names() == [STREAM, DEAD_STREAM]
    config = (await api.request(f"STREAM.INFO.{STREAM}"))["config"]
    assert config["subjects"] == ["events.>"]
    assert (config["retention"], config["storage"], config["discard"]) == ("limits", "file", "old")
    assert (config["max_msgs"], config["max_bytes"], config.get("max_age", 0)) == (-1, -1, 0)
    assert config["duplicate_window"] == 600_000_000_000
    await check_store(api, STREAM)


async def test_stream_of_another_name_is_used(api):
    await api.request("STREAM.CREATE.events", {"name": "events", "subjects": ["events.>"]})

    assert await ensure_streams(api) == await find_stream(api) == "events"


async def test_stream_of_the_documentation_is_refused_at_the_start(api):
    await api.request("STREAM.CREATE.events", {"name": "events", "subjects": ["events.*"]})

    with pytest.raises(ConfigurationError, match=r"stream events listens on events\.\*, which does not match"):
        await find_stream(api)


async def test_missing_stream_is_refused_at_the_start(api):
    with pytest.raises(ConfigurationError, match=r"jetlake stream add EVENTS --subjects 'events\.>'"):
        await find_stream(api)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("retention", "workqueue", "retention workqueue"), ("max_msgs_per_subject", 1, "1 messages per subject")],
)
async def test_stream_that_forgets_is_no_event_store(api, field, value, reason):
    await api.request("STREAM.CREATE.EVENTS", {"name": "EVENTS", "subjects": ["events.>"], field: value})

    with pytest.raises(ConfigurationError, match=reason):
        await check_store(api, "EVENTS")


def test_old_server_is_refused():
    with pytest.raises(ConfigurationError, match=r"version 2\.2\.6: JetStream needs 2\.3 or newer"):
        check_version(SimpleNamespace(major=2, minor=2, patch=6), SERVER_VERSION_MIN, "JetStream")
    check_version(SimpleNamespace(major=2, minor=3, patch=0), SERVER_VERSION_MIN, "JetStream")
