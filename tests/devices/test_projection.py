"""State from events with holes, repetitions and new beginnings."""

import random

import pytest

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.devices.codec import EventCodec
from jetlake.devices.consumer import read_events, subscribe
from jetlake.devices.content import value_of
from jetlake.devices.generations import Generation
from jetlake.devices.projection import EventOutcome, Missing, Projection
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.publisher import EventPublisher
from jetlake.devices.session import UserSession, event_of
from jetlake.devices.settings import Settings
from jetlake.devices.store.contract import EventFilter
from jetlake.devices.store.in_memory import MemoryStore
from jetlake.devices.store.in_stream import StreamStore
from jetlake.devices.subjects import AggregateKey
from tests.devices import commands as c
from tests.devices.samples import D1, event
from tests.devices.waiting import until

KEY = AggregateKey.of_href(D1, c.HREF)


def as_event(message):
    encoded = EventCodec().encode(message)
    return EventCodec().decode(encoded.payload, subject=encoded.subject)


def changed(version, value=None, **fields):
    made = event("resourcechanged", D1, c.HREF, version=version, **fields)
    made.content.data = bytes([version if value is None else value])
    made.content.content_type = "application/cbor"
    return as_event(made)


def snapshot(version, value):
    made = event("resourcestatesnapshottaken", D1, c.HREF, version=version)
    made.latest_resource_change.content.data = bytes([value])
    return as_event(made)


def data_of(projection):
    return projection.aggregates[KEY].latest.content.data[0]


def store_of(*kept):
    async def refetch(key, after_ns):
        return [each for each in kept if each.key == key and each.timestamp_ns > after_ns]

    return refetch


async def test_hole_is_filled_from_the_store_before_the_event_is_applied():
    history = [changed(version) for version in range(4)]
    projection = Projection(store_of(*history))
    for each in history[:2]:
        assert await projection.apply(each) is EventOutcome.ACCEPTED

    assert await projection.apply(history[3]) is EventOutcome.RECOVERED

    assert (projection.aggregates[KEY].version, data_of(projection), projection.gap_count) == (3, 3, 1)
    assert not projection.missing


async def test_hole_that_a_snapshot_has_compacted_away_is_recorded():
    kept = [snapshot(5, 4), changed(6)]
    projection = Projection(store_of(*kept))
    await projection.apply(changed(0))
    await projection.apply(changed(1))

    assert await projection.apply(changed(6)) is EventOutcome.RECOVERED

    assert data_of(projection) == 6
    assert list(projection.missing) == [Missing(KEY, 2, 4)]


async def test_hole_that_nobody_can_fill_leaves_the_state_as_it_was():
    projection = Projection(store_of())
    await projection.apply(changed(0))

    assert await projection.apply(changed(2)) is EventOutcome.UNRESOLVED
    assert await Projection().apply(changed(3)) is EventOutcome.UNRESOLVED

    assert data_of(projection) == 0


async def test_next_snapshot_closes_a_hole_that_nobody_fills():
    projection = Projection()
    await projection.apply(changed(0))

    assert await projection.apply(changed(2)) is EventOutcome.UNRESOLVED
    assert await projection.apply(snapshot(3, 2)) is EventOutcome.RECOVERED
    assert await projection.apply(changed(4)) is EventOutcome.ACCEPTED

    assert data_of(projection) == 4
    assert list(projection.missing) == [Missing(KEY, 1, 2)]


async def test_order_and_repetition_do_not_change_the_result():
    history = [changed(version) for version in range(17)]
    for seed in range(20):
        chance = random.Random(seed)
        delivered = history + chance.choices(history, k=10)
        chance.shuffle(delivered)
        projection = Projection(store_of(*history))

        for each in delivered:
            await projection.apply(each)

        assert (projection.aggregates[KEY].version, data_of(projection)) == (16, 16), seed


async def test_redelivered_first_event_does_not_rewind():
    projection = Projection()
    for version in range(3):
        await projection.apply(changed(version))

    assert await projection.apply(changed(0)) is EventOutcome.IGNORED

    assert projection.aggregates[KEY].version == 2


async def test_deleted_and_onboarded_device_begins_a_new_epoch():
    projection = Projection()
    for version in range(3):
        await projection.apply(changed(version))
    later_ns = projection.aggregates[KEY].timestamp_ns + 10

    assert await projection.apply(changed(0, 77, timestamp_ns=later_ns)) is EventOutcome.ACCEPTED
    assert await projection.apply(changed(1, 78, timestamp_ns=later_ns + 1)) is EventOutcome.ACCEPTED

    assert (projection.aggregates[KEY].version, data_of(projection)) == (1, 78)


async def test_new_epoch_whose_beginning_was_missed_is_fetched():
    later_ns = changed(9).timestamp_ns + 10
    fresh = [changed(0, 7, timestamp_ns=later_ns), changed(1, 8, timestamp_ns=later_ns + 1)]
    projection = Projection(store_of(*fresh))
    for version in range(5):
        await projection.apply(changed(version))

    assert await projection.apply(fresh[1]) is EventOutcome.RECOVERED

    assert (projection.aggregates[KEY].version, data_of(projection)) == (1, 8)


async def test_older_snapshot_does_not_rewind_and_a_first_one_is_enough():
    projection = Projection()

    assert await projection.apply(snapshot(16, 15)) is EventOutcome.ACCEPTED
    assert await projection.apply(changed(17)) is EventOutcome.ACCEPTED
    assert await projection.apply(snapshot(16, 15)) is EventOutcome.IGNORED

    assert data_of(projection) == 17


async def test_type_of_the_future_takes_its_version():
    projection = Projection()
    await projection.apply(changed(0))

    unknown = changed(1)._replace(event_type="resourceteleported", message=None)
    assert await projection.apply(unknown) is EventOutcome.ACCEPTED
    assert await projection.apply(changed(2)) is EventOutcome.ACCEPTED


async def test_snapshot_alone_gives_the_state_of_the_full_replay(api, stream):
    session = UserSession(api, StreamStore(api, stream), Settings(jetstream=True))
    for value in range(17):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))
    await session.execute("UpdateResource", c.command("k1", 1))
    history = [each async for each in read_events(api, stream, to_end=True)]

    full, short = Projection(), Projection()
    for each in history:
        await full.apply(each)
    for each in history[16:]:
        await short.apply(each)

    assert history[16].is_snapshot
    assert short.aggregates[KEY].latest == full.aggregates[KEY].latest
    assert list(short.aggregates[KEY].pendings) == list(full.aggregates[KEY].pendings) == ["k1"]


@pytest.mark.parametrize("lost", [[1], [1, 2], [3, 4, 5]])
async def test_events_lost_on_the_bus_are_fetched_from_the_service(api, lost):
    """Core mode with a bus that loses events, as when a server is down between saving and publishing."""
    received = []
    await subscribe(api, "events.>", received.append)
    await api.connection.flush()
    store, publisher = MemoryStore(), LosingPublisher(api, lost)
    session = UserSession(api, store.on_bus(publisher), Settings())
    for value in range(8):
        answer = await session.execute("NotifyResourceChanged", c.notify(value, value + 1))
        assert event_of(answer.events[0]).event_metadata.version == value
    await until(lambda: len(received) == 8 - len(lost))

    async def refetch(key, after_ns):
        return [each async for each in session.events(EventFilter(keys=(key,), after_ns=after_ns))]

    projection = Projection(refetch)
    for each in received:
        await projection.apply(each)

    assert projection.gap_count == 1
    assert projection.aggregates[KEY].latest == session.store.hold(KEY, c.HREF).aggregate.latest


async def test_loss_at_the_tail_is_found_by_asking_for_newer_events(api):
    received = []
    await subscribe(api, "events.>", received.append)
    await api.connection.flush()
    session = UserSession(api, MemoryStore().on_bus(LosingPublisher(api, [3])), Settings())
    for value in range(4):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))
    await until(lambda: len(received) == 3)
    projection = Projection()
    for each in received:
        await projection.apply(each)

    # Nothing in what was received tells that something is missing.
    assert (projection.gap_count, projection.aggregates[KEY].version) == (0, 2)
    newest_ns = projection.aggregates[KEY].timestamp_ns
    async for each in session.events(EventFilter(after_ns=newest_ns)):
        await projection.apply(each)

    assert value_of(projection.aggregates[KEY].latest.content) == 3


async def test_hole_in_a_stream_is_closed_by_its_next_snapshot(api, stream):
    session = UserSession(api, StreamStore(api, stream), Settings(jetstream=True))
    for value in range(20):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1))
    await api.request(f"STREAM.MSG.DELETE.{stream}", {"seq": 4})

    async def refetch(key, after_ns):
        return [each async for each in session.events(EventFilter(keys=(key,), after_ns=after_ns))]

    projection = Projection(refetch)
    async for each in read_events(api, stream, to_end=True):
        await projection.apply(each)

    assert value_of(projection.aggregates[KEY].latest.content) == 19
    assert list(projection.missing) == [Missing(KEY, 3, 15)]


async def test_old_generation_is_projected_too(api, stream):
    codec = EventCodec(Generation.Y2021)
    publisher = EventPublisher(api, jetstream=True, codec=codec)
    for version in range(3):
        await publisher.publish(
            event("resourcechanged", D1, c.HREF, version=version, status=1, generation=Generation.Y2021)
        )

    projection = Projection()
    async for each in read_events(api, stream, to_end=True, codec=codec):
        await projection.apply(each)

    assert projection.aggregates[KEY].latest.status == events.OK


async def test_restarted_projection_ends_where_the_first_one_did(server, api, stream):
    session = UserSession(api, StreamStore(api, stream), Settings(jetstream=True))
    for value in range(40):
        await session.execute("NotifyResourceChanged", c.notify(value, value + 1, href=f"/r/{value % 3}"))
    await session.execute("DeleteDevices", api_pb2.DeleteDevicesRequest(device_id_filter=["none"]))
    states = []
    for _ in range(2):
        async with open_api(Access(url=server.url)) as own:
            projection = Projection()
            async for each in read_events(own, stream, to_end=True):
                await projection.apply(each)
            states.append({key.resource_id: found.latest for key, found in projection.aggregates.items()})

    assert states[0] == states[1]
    assert len(states[0]) == 3


class LosingPublisher(EventPublisher):
    """A bus that does not carry some events: those with these numbers."""

    def __init__(self, api, lost):
        super().__init__(api, jetstream=False)
        self._lost = lost
        self._number = -1

    async def publish(self, message, **options):
        self._number += 1
        return None if self._number in self._lost else await super().publish(message, **options)
