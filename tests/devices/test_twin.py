"""What is known of devices."""

import asyncio
import time
from contextlib import suppress

import pytest

from jetlake.devices import live_twin
from jetlake.devices.codec import EventCodec
from jetlake.devices.generations import Generation
from jetlake.devices.live_twin import LiveTwin
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2021_pb2 as events_2021
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.session import UserSession
from jetlake.devices.settings import Settings
from jetlake.devices.store.in_stream import StreamStore
from jetlake.devices.twin import Twin
from jetlake.shared import cancellation
from tests.devices import commands as c
from tests.devices.samples import D1, D2, event

NOW_NS = time.time_ns()

CLOSE_S_MAX = 20.0
"""How long closing may take on a machine that is busy with other tests."""


@pytest.fixture
async def session(api, stream):
    return UserSession(api, StreamStore(api, stream), Settings(jetstream=True))


@pytest.fixture
async def live(api, stream):
    twin = LiveTwin(api, stream)
    yield twin
    await twin.close()


async def test_twin_knows_links_resources_connection_and_commands(session, live):
    await session.execute("UpdateDeviceMetadata", c.online())
    await session.execute("PublishResourceLinks", c.publish_links("/oic/d", c.HREF))
    await session.execute("NotifyResourceChanged", c.notify({"n": "lamp"}, 1, href="/oic/d"))
    await session.execute("NotifyResourceChanged", c.notify({"power": 1}, 2))
    await session.execute("UpdateResource", c.command("k1", {"power": 2}, time_to_live=10**8))
    await session.execute("RetrieveResource", c.command("k2"))
    await session.execute("UpdateDeviceMetadata", c.twin("t1", twin_enabled=False))

    view = (await live.current()).device(D1)

    assert (view.name, view.types, view.is_online()) == ("lamp", ["x.light"], True)
    assert sorted(view.links) == sorted(view.resources) == [c.HREF, "/oic/d"]
    later_ns = time.time_ns() + 10**9
    pending = [each.audit_context.correlation_id for each in view.pending_commands(0)]
    assert pending == ["k1", "k2", "t1"]
    # The time of the first is over.
    assert [each.audit_context.correlation_id for each in view.pending_commands(later_ns)] == ["k2", "t1"]


async def test_reading_sees_what_was_written_before(session, live):
    for value in range(30):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))
        view = (await live.current()).device(D1)
        assert view.resources[c.HREF].latest.content.data == c.notify(value).content.data

    await session.execute("UpdateDeviceMetadata", c.online())
    assert (await live.current()).device(D1).is_online()
    await session.execute("UpdateDeviceMetadata", c.offline())
    assert not (await live.current()).device(D1).is_online()


async def test_deleted_device_is_gone_from_the_twin_of_others(session, live):
    await session.execute("NotifyResourceChanged", c.notify(1, 1))
    await session.execute("NotifyResourceChanged", c.notify(1, 1, device=D2))
    assert [view.device_id for view in (await live.current()).devices()] == sorted([D1, D2])

    await session.execute("DeleteDevices", api_pb2.DeleteDevicesRequest(device_id_filter=[D2]))
    assert [view.device_id for view in (await live.current()).devices()] == [D1]
    await session.execute("DeleteDevices", api_pb2.DeleteDevicesRequest(device_id_filter=[D1]))
    assert (await live.current()).devices() == []
    await session.execute("NotifyResourceChanged", c.notify(2, 9))
    assert [view.device_id for view in (await live.current()).devices()] == [D1]


@pytest.mark.parametrize("has_past", [False, True])
async def test_oldest_device_that_is_deleted_is_gone_from_a_twin_that_began_empty(session, live, has_past):
    if has_past:
        await session.execute("NotifyResourceChanged", c.notify(1, 1))
        await session.execute("DeleteDevices", api_pb2.DeleteDevicesRequest(device_id_filter=[D1]))
    assert (await live.current()).devices() == []
    await session.execute("NotifyResourceChanged", c.notify(1, 1))
    await session.execute("NotifyResourceChanged", c.notify(1, 1, device=D2))

    await session.execute("DeleteDevices", api_pb2.DeleteDevicesRequest(device_id_filter=[D1]))

    assert [view.device_id for view in (await live.current()).devices()] == [D2]


async def test_twin_that_began_empty_reads_on_while_nothing_is_deleted(session, live):
    assert (await live.current()).devices() == []
    reading = live._task

    await session.execute("NotifyResourceChanged", c.notify(1, 1))

    assert [view.device_id for view in (await live.current()).devices()] == [D1]
    assert live._task is reading


async def test_garbage_in_the_stream_does_not_stop_the_twin(session, live, api):
    await api.ask(f"events.{D1}.metadata.devicemetadataupdated", b"garbage")
    await session.execute("UpdateDeviceMetadata", c.online())
    await api.ask(f"events.{D1}.metadata.devicemetadataupdated", b"")

    assert (await live.current()).device(D1).is_online()


async def test_unknown_device_has_nothing(live):
    view = (await live.current()).device("unknown")

    assert (view.is_online(), view.links, view.name, view.pending_commands(0)) == (False, {}, "", [])


async def test_device_of_2021_is_online_until_its_time_is_over():
    codec = EventCodec(Generation.Y2021)
    message = event("devicemetadataupdated", D1, generation=Generation.Y2021)
    message.status.value, message.status.valid_until = events_2021.ConnectionStatus.ONLINE, 1000
    twin = Twin()

    encoded = codec.encode(message)
    await twin.apply(codec.decode(encoded.payload, subject=encoded.subject))

    assert twin.device(D1).is_online(now_ns=999)
    assert not twin.device(D1).is_online(now_ns=1001)
    assert twin.device(D1).metadata.current.connection.status == events.Connection.ONLINE


async def test_close_ends_though_a_cancellation_is_lost(api, stream, monkeypatch):
    has_started = asyncio.Event()

    async def read_on(*_arguments, **_options):
        has_started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(live_twin, "read", read_on)
    monkeypatch.setattr(cancellation, "CANCEL_INTERVAL_S", 0.01)
    twin = LiveTwin(api, stream)
    await twin._start_if_needed()
    await has_started.wait()

    closing = asyncio.create_task(twin.close())
    ended, _ = await asyncio.wait({closing}, timeout=CLOSE_S_MAX)
    closing.cancel()

    assert ended == {closing}
