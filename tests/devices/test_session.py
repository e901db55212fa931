"""Commands on a server: the stream is the event store."""

import asyncio
import random
from contextlib import AsyncExitStack, aclosing

import pytest

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.devices.codec import EventCodec
from jetlake.devices.consumer import read_events
from jetlake.devices.content import value_of
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.publisher import EventPublisher
from jetlake.devices.session import BATCH_MAX, UserSession, event_of
from jetlake.devices.settings import Settings
from jetlake.devices.store.contract import EventFilter
from jetlake.devices.store.in_memory import MemoryStore
from jetlake.devices.store.in_stream import StreamStore
from jetlake.devices.subjects import AggregateKey
from jetlake.errors import ClientError, DeviceError
from tests.devices import commands as c
from tests.devices.samples import D1, D2
from tests.devices.waiting import until

SETTINGS = Settings(jetstream=True)


@pytest.fixture
async def open_session(server, api, stream):
    """A function that opens one more session, over a connection of its own."""
    async with AsyncExitStack() as stack:

        async def opened(settings=SETTINGS):
            own = await stack.enter_async_context(open_api(Access(url=server.url), reconnect=True))
            return UserSession(own, StreamStore(own, stream), settings, user_id="ada", owner="acme")

        yield opened


@pytest.fixture
async def session(open_session):
    return await open_session()


async def stored(api, stream, *patterns):
    async with aclosing(read_events(api, stream, patterns, to_end=True)) as found:
        return [event async for event in found]


def refused(status):
    return pytest.raises(DeviceError, check=lambda error: error.status == status)


async def test_command_is_answered_with_what_is_stored(session, api, stream):
    answer = await session.execute("NotifyResourceChanged", c.notify({"power": 1}, 1), peer="1.2.3.4:5")

    (event,) = await stored(api, stream)
    assert event_of(answer.events[0]) == event.message
    assert event.message.audit_context.owner == "acme"
    assert event.message_id


async def test_no_op_stores_nothing(session, count, stream):
    await session.execute("NotifyResourceChanged", c.notify(1, 1))
    answer = await session.execute("NotifyResourceChanged", c.notify(1, 1))

    assert not answer.events
    assert await count(stream) == 1


async def test_unknown_resource_is_not_found_and_nothing_is_on_the_bus(session, api, stream, count):
    seen = []

    async def see(message):
        seen.append(message)

    await api.connection.subscribe("events.>", cb=see)
    await api.connection.flush()

    for name in ("UpdateResource", "RetrieveResource", "CreateResource", "DeleteResource"):
        with refused("NOT_FOUND"):
            await session.execute(name, c.command("k", 1))
    await api.connection.flush()

    assert await count(stream) == 0
    assert seen == []


async def test_update_and_its_confirmation_have_consecutive_versions(session, api, stream):
    await session.execute("NotifyResourceChanged", c.notify({"power": 1}, 1))
    await session.execute("UpdateResource", c.command("k1", {"power": 2}))
    await session.execute("ConfirmResourceUpdate", c.confirm("k1"))
    await session.execute("NotifyResourceChanged", c.notify({"power": 1}, 2))
    await session.execute("NotifyResourceChanged", c.notify({"power": 2}, 3))

    found = await stored(api, stream)

    assert [(event.event_type, event.version) for event in found] == [
        ("resourcechanged", 0),
        ("resourceupdatepending", 1),
        ("resourceupdated", 2),
        ("resourcechanged", 3),
    ]
    assert {found[1].message.audit_context.correlation_id, found[2].message.audit_context.correlation_id} == {"k1"}


async def test_snapshot_comes_after_sixteen_events_and_has_a_version(session, open_session, api, stream):
    for value in range(17):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))

    found = await stored(api, stream)

    assert [event.version for event in found] == list(range(18))
    assert [event.version for event in found if event.is_snapshot] == [16]
    fresh = await open_session()
    held = fresh.store.hold(AggregateKey.of_href(D1, c.HREF), c.HREF)
    await fresh.store.load(held)
    assert (held.aggregate.version, value_of(held.aggregate.latest.content)) == (17, 16)
    assert held.aggregate.events_since_snapshot == 1


async def test_snapshots_come_at_16_33_and_50(session, api, stream):
    for value in range(50):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))

    found = await stored(api, stream)

    assert [event.version for event in found] == list(range(53))
    assert [event.version for event in found if event.is_snapshot] == [16, 33, 50]


async def test_snapshot_that_would_not_fit_is_left_out(session, api, stream):
    await session.execute("NotifyResourceChanged", c.notify(0, 1))
    for number in range(3):
        noise = random.Random(number).randbytes(400_000)
        await session.execute("UpdateResource", c.command(f"k{number}", noise.hex()[:400_000]))
    for value in range(1, 20):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))

    found = await stored(api, stream)

    assert [event.version for event in found] == list(range(23))
    assert not any(event.is_snapshot for event in found)


async def test_content_that_does_not_fit_is_refused(session, count, stream):
    with refused("INVALID_ARGUMENT"):
        await session.execute("NotifyResourceChanged", c.notify(random.Random(1).randbytes(2_000_000), 1))

    await session.execute("NotifyResourceChanged", c.notify(1, 1))
    assert await count(stream) == 1


async def test_pending_commands_survive_snapshots_and_sessions(session, open_session):
    await session.execute("NotifyResourceChanged", c.notify(0, 1))
    await session.execute("UpdateResource", c.command("k1", 5))
    for value in range(1, 40):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))

    answer = await (await open_session()).execute("ConfirmResourceUpdate", c.confirm("k1"))

    assert event_of(answer.events[-1]).audit_context.correlation_id == "k1"


async def test_concurrent_writers_lose_nothing_and_never_share_a_version(open_session, api, stream):
    writers = [await open_session() for _ in range(4)]

    async def write(number, session):
        for sequence in range(1, 26):
            command = c.notify({"writer": number, "value": sequence}, sequence, connection=f"c{number}")
            for _ in range(100):
                try:
                    await session.execute("NotifyResourceChanged", command)
                    break
                except DeviceError as error:
                    if error.status != "ABORTED":
                        raise

    await asyncio.gather(*(write(number, session) for number, session in enumerate(writers)))

    found = await stored(api, stream)
    assert [event.version for event in found] == list(range(len(found)))
    values = [
        tuple(value_of(event.message.content).values()) for event in found if event.event_type == "resourcechanged"
    ]
    assert sorted(values) == [(number, sequence) for number in range(4) for sequence in range(1, 26)]
    times = [event.timestamp_ns for event in found]
    assert times == sorted(set(times))


async def test_tasks_of_one_session_do_not_disturb_each_other(session, api, stream):
    await asyncio.gather(
        *(session.execute("NotifyResourceChanged", c.notify(value, connection=f"c{value}")) for value in range(40))
    )

    found = await stored(api, stream)
    assert [event.version for event in found] == list(range(42))


async def test_writer_without_retries_is_told_to_send_again(open_session):
    first, second = await open_session(), await open_session(Settings(jetstream=True, conflict_retries_max=0))
    await second.execute("NotifyResourceChanged", c.notify(1, 1))
    await first.execute("NotifyResourceChanged", c.notify(2, 2))

    with refused("ABORTED"):
        await second.execute("NotifyResourceChanged", c.notify(3, 3))
    await second.execute("NotifyResourceChanged", c.notify(3, 3))


async def test_lost_acknowledgement_is_found_by_its_message_id(open_session, server, api, stream, monkeypatch):
    session = await open_session()
    await session.execute("NotifyResourceChanged", c.notify(0, 1))
    request = session.api.connection.request
    lost = []

    async def losing(subject, payload, **options):
        answer = await request(subject, payload, **options)
        if subject.startswith("events.") and not lost:
            lost.append(answer)
            raise TimeoutError
        return answer

    monkeypatch.setattr(session.api.connection, "request", losing)
    await session.execute("NotifyResourceChanged", c.notify(1, 2))
    await session.execute("NotifyResourceChanged", c.notify(2, 3))

    assert lost
    assert [event.version for event in await stored(api, stream)] == [0, 1, 2]


async def test_links_that_go_leave_their_resources_not_found(session, api, stream):
    await session.execute("PublishResourceLinks", c.publish_links("/light/1", "/never/notified"))
    await session.execute("NotifyResourceChanged", c.notify(1, 1))

    answer = await session.execute("UnpublishResourceLinks", c.unpublish_links())

    unpublished, changed = (event_of(each) for each in answer.events)
    assert list(unpublished.hrefs) == ["/light/1", "/never/notified"]
    assert (changed.status, changed.content.coap_content_format, changed.content.data) == (events.NOT_FOUND, -1, b"")


async def test_command_to_end_links_that_was_cut_off_is_whole_when_it_is_sent_again(
    session, open_session, api, stream, monkeypatch
):
    await session.execute("PublishResourceLinks", c.publish_links("/light/0", "/light/1"))
    await session.execute("NotifyResourceChanged", c.notify(1, 1, href="/light/0"))
    await session.execute("NotifyResourceChanged", c.notify(1, 1, href="/light/1"))
    append, calls = session.store.append, []

    async def append_once(held, messages):
        calls.append(held)
        if len(calls) > 1:
            raise DeviceError("UNAVAILABLE", "the service was killed")
        return await append(held, messages)

    monkeypatch.setattr(session.store, "append", append_once)
    with pytest.raises(DeviceError, match="killed"):
        await session.execute("UnpublishResourceLinks", c.unpublish_links())

    await (await open_session()).execute("UnpublishResourceLinks", c.unpublish_links())

    found = [each.message for each in await stored(api, stream)][3:]
    assert [type(message) for message in found] == [
        events.ResourceChanged,
        events.ResourceChanged,
        events.ResourceLinksUnpublished,
    ]
    assert [message.resource_id.href for message in found[:2]] == ["/light/0", "/light/1"]
    assert list(found[2].hrefs) == ["/light/0", "/light/1"]


async def test_deleted_device_starts_again_at_version_zero(session, open_session, api, stream):
    other = await open_session()
    await other.execute("NotifyResourceChanged", c.notify(0, 1))
    await session.execute("NotifyResourceChanged", c.notify(1, 2))
    await session.execute("NotifyResourceChanged", c.notify(1, 1, device=D2))
    before = (await stored(api, stream))[-1].timestamp_ns

    deleted = await session.execute("DeleteDevices", api_pb2.DeleteDevicesRequest(device_id_filter=[D1, "unknown"]))
    await session.execute("NotifyResourceChanged", c.notify(5, 9))
    await other.execute("NotifyResourceChanged", c.notify(6, 10))

    assert list(deleted.device_ids) == [D1]
    found = await stored(api, stream, f"events.{D1}.>")
    assert [event.version for event in found] == [0, 1]
    assert found[0].timestamp_ns > before


async def test_command_that_another_user_sent_can_be_confirmed(session, open_session, api, stream):
    other = await open_session()
    await session.execute("NotifyResourceChanged", c.notify({"power": 1}))
    await other.execute("UpdateResource", c.command("k1", {"power": 2}))

    await session.execute("ConfirmResourceUpdate", c.confirm("k1", value={"power": 2}))

    types = [event.event_type for event in await stored(api, stream)]
    assert types == ["resourcechanged", "resourceupdatepending", "resourceupdated"]


async def test_content_is_stored_again_after_another_user_stored_something_else(session, open_session, api, stream):
    other = await open_session()
    await session.execute("NotifyResourceChanged", c.notify(7))
    await other.execute("NotifyResourceChanged", c.notify(9))

    answer = await session.execute("NotifyResourceChanged", c.notify(7))

    assert len(answer.events) == 1
    assert [value_of(event.message.content) for event in await stored(api, stream)] == [7, 9, 7]


async def test_links_that_another_user_published_are_unpublished(session, open_session):
    other = await open_session()
    await session.execute("PublishResourceLinks", c.publish_links("/light/0"))
    await other.execute("PublishResourceLinks", c.publish_links("/light/1"))

    answer = await session.execute("UnpublishResourceLinks", c.unpublish_links())

    assert list(event_of(answer.events[0]).hrefs) == ["/light/0", "/light/1"]


@pytest.mark.parametrize("deletes_itself", [True, False])
async def test_content_from_before_a_device_was_deleted_is_stored_again(
    session, open_session, api, stream, deletes_itself
):
    await session.execute("NotifyResourceChanged", c.notify(7))
    deleting = session if deletes_itself else await open_session()
    await deleting.execute("DeleteDevices", api_pb2.DeleteDevicesRequest(device_id_filter=[D1]))

    await session.execute("NotifyResourceChanged", c.notify(7))

    assert [event.version for event in await stored(api, stream)] == [0]


async def test_aggregate_is_read_from_its_start_after_reading_it_was_cut_off(session, open_session, monkeypatch):
    for value in range(17):
        await session.execute("NotifyResourceChanged", c.notify(value))
    other = await open_session()
    request, calls = other.api.request, []

    async def request_once(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise ClientError("the connection broke")
        return await request(*arguments, **options)

    monkeypatch.setattr(other.api, "request", request_once)
    with pytest.raises(DeviceError, match="broke"):
        await other.execute("NotifyResourceChanged", c.notify(17))

    answer = await other.execute("NotifyResourceChanged", c.notify(17))

    assert event_of(answer.events[0]).event_metadata.version == 18


async def test_malformed_message_of_somebody_else_does_not_stop_an_aggregate(session, open_session, api, stream):
    await session.execute("NotifyResourceChanged", c.notify(0, 1))
    await api.ask(AggregateKey.of_href(D1, c.HREF).subject("resourcechanged"), b"garbage")

    for each in (session, await open_session()):
        await each.execute("NotifyResourceChanged", c.notify(each is session, 2, connection=str(id(each))))

    assert [event.version for event in await stored(api, stream)] == [0, 1, 2]


async def test_lost_history_is_an_error_and_not_a_new_beginning(session, open_session, api, stream):
    for value in range(3):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))
    await api.request(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})

    with refused("DATA_LOSS"):
        await (await open_session()).execute("NotifyResourceChanged", c.notify(9, 9))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("NotifyResourceChanged", c.notify(1, device="a.b")),
        ("NotifyResourceChanged", c.notify(1, href="light")),
        ("NotifyResourceChanged", c.notify(1, href="/plgd/res")),
        ("BatchNotifyResourceChanged", api_pb2.BatchNotifyResourceChangedRequest()),
        (
            "BatchNotifyResourceChanged",
            api_pb2.BatchNotifyResourceChangedRequest(batch=[c.notify(1)] * (BATCH_MAX + 1)),
        ),
        ("DeleteDevices", api_pb2.DeleteDevicesRequest()),
        ("UpdateResource", c.command("k", 1, wait_for_confirmation=-1)),
    ],
)
async def test_wrong_command_is_refused_at_once(session, count, stream, name, command):
    with refused("INVALID_ARGUMENT"):
        await session.execute(name, command)

    assert await count(stream) == 0


async def test_batch_stores_each_notification(session, api, stream):
    batch = [c.notify(value, href=f"/r/{value}") for value in range(5)]

    answer = await session.execute("BatchNotifyResourceChanged", api_pb2.BatchNotifyResourceChangedRequest(batch=batch))

    assert len(answer.events) == 5
    assert len({event.key for event in await stored(api, stream)}) == 5


async def test_metadata_commands_are_stored(session, api, stream):
    await session.execute("UpdateDeviceMetadata", c.online())
    await session.execute("UpdateDeviceMetadata", c.twin("t1", twin_enabled=False))
    await session.execute("ConfirmDeviceMetadataUpdate", c.confirm_twin("t1"))
    await session.execute("UpdateDeviceMetadata", c.twin("t2", twin_enabled=True))
    await session.execute(
        "CancelPendingMetadataUpdates",
        api_pb2.CancelPendingMetadataUpdatesRequest(device_id=D1, command_metadata=c.metadata()),
    )

    types = [event.event_type for event in await stored(api, stream)]

    assert types == ["devicemetadataupdated", "devicemetadataupdatepending"] * 2 + ["devicemetadataupdated"]


async def test_events_after_a_time_exclude_that_very_time(session):
    for value in range(4):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))
    await session.execute("NotifyResourceChanged", c.notify(1, 1, href="/other"))
    await session.execute("NotifyResourceChanged", c.notify(1, 1, device=D2))
    everything = [event async for event in session.events(EventFilter())]
    key = AggregateKey.of_href(D1, c.HREF)
    at_ns = everything[1].timestamp_ns

    async def versions(**wanted):
        return [event.version async for event in session.events(EventFilter(**wanted))]

    assert len(everything) == 6
    assert await versions(keys=(key,), after_ns=at_ns) == [2, 3]
    assert await versions(keys=(key,), after_ns=at_ns - 1) == [1, 2, 3]
    assert await versions(device_ids=(D2,)) == [0]
    assert await versions(device_ids=(D1,), keys=(key,)) == [0, 1, 2, 3, 0]
    assert await versions(device_ids=("foreign",)) == []


async def test_confirmation_can_be_waited_for(session, open_session):
    device = await open_session()
    await device.execute("NotifyResourceChanged", c.notify({"power": 1}, 1))
    waiting = asyncio.create_task(
        session.execute("UpdateResource", c.command("k1", {"power": 2}, wait_for_confirmation=30 * 10**9))
    )
    held = device.store.hold(AggregateKey.of_href(D1, c.HREF), c.HREF)
    for _ in range(3000):
        device.store._cache.forget(held)
        await device.store.load(held)
        if held.aggregate.pendings:
            break
        await asyncio.sleep(0.01)

    await device.execute("ConfirmResourceUpdate", c.confirm("k1", value={"power": 2}))
    answer = await waiting

    assert answer.confirmation.resource_updated.status == events.OK
    assert value_of(answer.confirmation.resource_updated.content) == {"power": 2}


async def test_confirmation_that_does_not_come_leaves_the_command_pending(session):
    await session.execute("NotifyResourceChanged", c.notify(1, 1))

    with refused("DEADLINE_EXCEEDED"):
        await session.execute("UpdateResource", c.command("k1", 2, wait_for_confirmation=10**8))

    with refused("INVALID_ARGUMENT"):
        await session.execute("UpdateResource", c.command("k1", 2))


async def test_server_that_is_gone_is_a_clear_error_and_nothing_is_half_done(start_server):
    own = start_server(["-js"])
    async with open_api(Access(url=own.url)) as api:
        await api.request("STREAM.CREATE.EVENTS", {"name": "EVENTS", "subjects": ["events.>"]})
        session = UserSession(api, StreamStore(api, "EVENTS"), SETTINGS)
        await session.execute("NotifyResourceChanged", c.notify(1, 1))
        own.stop()
        # Only from now on: nothing answers any more.
        api.access = Access(url=own.url, timeout_s=0.3)

        with refused("UNAVAILABLE"):
            await session.execute("NotifyResourceChanged", c.notify(2, 2))


# Core mode: memory first, the bus second.


async def core_session(api, store=None, settings=Settings()):  # noqa: B008
    publisher = EventPublisher(api, jetstream=False)
    return UserSession(api, (store or MemoryStore()).on_bus(publisher), settings)


async def test_core_mode_publishes_and_keeps_nothing_on_the_server(api):
    received = []

    async def receive(message):
        received.append(EventCodec().decode(message.data, subject=message.subject))

    await api.connection.subscribe("events.>", cb=receive)
    await api.connection.flush()
    session = await core_session(api)

    for value in range(17):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))
    await until(lambda: len(received) == 18)

    assert [event.version for event in received] == list(range(18))
    assert await api.stream_names() == []


async def test_core_mode_drops_what_a_snapshot_makes_superfluous(api):
    session = await core_session(api)

    for value in range(20):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))

    assert [event.version async for event in session.events(EventFilter())] == [16, 17, 18, 19, 20]
    deleted = await session.execute("DeleteDevices", api_pb2.DeleteDevicesRequest(device_id_filter=[D1]))
    assert list(deleted.device_ids) == [D1]
    answer = await session.execute("NotifyResourceChanged", c.notify(1, 1))
    assert event_of(answer.events[0]).event_metadata.version == 0


async def test_core_mode_answers_commands_while_the_bus_is_down(start_server, caplog):
    own = start_server()
    async with open_api(Access(url=own.url)) as api:
        session = await core_session(api)
        await session.execute("NotifyResourceChanged", c.notify(1, 1))
        own.stop()

        await until(lambda: not api.connection.is_connected)
        await session.execute("NotifyResourceChanged", c.notify(2, 2))

        assert [event.version async for event in session.events(EventFilter())] == [0, 1]
    assert "was not published" in caplog.text
