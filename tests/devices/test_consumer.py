"""Events from a server: every pattern of the documentation, from any point, with what cannot be read set aside."""

import asyncio
from contextlib import aclosing

import pytest

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.client.dead_letters import DeadLetters
from jetlake.client.pulls import Start
from jetlake.devices.codec import EventCodec
from jetlake.devices.consumer import read_events, subscribe
from jetlake.devices.dead_letters import DeadLetterWriter
from jetlake.devices.generations import Generation
from jetlake.devices.publisher import EventPublisher
from jetlake.devices.stream import DEAD_STREAM
from jetlake.devices.subjects import Address
from tests.devices.samples import D1, GOLDEN, PATTERNS, corpus, event
from tests.devices.waiting import until


async def publish_corpus(api, generation=Generation.Y2025):
    publisher = EventPublisher(api, jetstream=True, codec=EventCodec(generation))
    for message in corpus(generation):
        await publisher.publish(message)


async def read_all(api, stream, patterns=(), **options):
    async with aclosing(read_events(api, stream, patterns, to_end=True, **options)) as events:
        return [event async for event in events]


async def test_each_pattern_gets_its_events_from_the_stream(api, stream):
    await publish_corpus(api)

    counts = [(pattern, len(await read_all(api, stream, [pattern]))) for pattern, _ in PATTERNS[:-1]]

    assert counts == list(PATTERNS[:-1])


async def test_each_pattern_gets_its_events_as_they_come(api, stream):
    received = {pattern: [] for pattern, _ in PATTERNS}
    for pattern, events in received.items():
        await subscribe(api, pattern, events.append)
    await api.connection.flush()

    await publish_corpus(api)
    await until(lambda: all(len(received[pattern]) >= number for pattern, number in PATTERNS))

    assert [(pattern, len(events)) for pattern, events in received.items()] == list(PATTERNS)
    assert [event.message for event in received["events.>"]] == corpus()


async def test_seeds_own_stream_subject_gets_nothing(api):
    await api.request("STREAM.CREATE.events", {"name": "events", "subjects": ["events.*"]})
    publisher = EventPublisher(api, jetstream=False)

    for message in corpus():
        await publisher.publish(message)

    assert (await api.request("STREAM.INFO.events"))["state"]["messages"] == 0


@pytest.mark.parametrize("generation", list(Generation))
async def test_reader_that_starts_later_gets_everything_in_order(api, stream, generation):
    await publish_corpus(api, generation)
    late = []
    await subscribe(api, "events.>", late.append)

    found = await read_all(api, stream, codec=EventCodec(generation))

    assert [event.message for event in found] == corpus(generation)
    assert [event.sequence for event in found] == list(range(1, 53))
    assert all(event.message_id for event in found)
    assert all(Address.of(event.subject).key == event.key for event in found)
    assert late == []


async def test_reader_can_start_at_a_time(api, stream):
    publisher = EventPublisher(api, jetstream=True)
    for version in range(5):
        await publisher.publish(event("resourcechanged", D1, "/oic/d", version=version))
        await asyncio.sleep(0.01)
    third = await api.request(f"STREAM.MSG.GET.{stream}", {"seq": 3})

    found = await read_all(api, stream, start=Start(time=third["message"]["time"]))

    assert [event.version for event in found] == [2, 3, 4]


async def test_restart_of_the_server_loses_nothing(start_server, tmp_path):
    flags = ["-js", "-sd", str(tmp_path / "store")]
    first = start_server(flags)
    async with open_api(Access(url=first.url)) as api:
        await api.request("STREAM.CREATE.EVENTS", {"name": "EVENTS", "subjects": ["events.>"]})
        await publish_corpus(api)
    first.process.kill()
    first.process.wait()

    second = start_server(flags)
    async with open_api(Access(url=second.url)) as api:
        found = await read_all(api, "EVENTS")

    assert [event.message for event in found] == corpus()


async def test_what_cannot_be_read_becomes_a_dead_letter_with_its_sequence(server, api, stream):
    good = event("resourcechanged", D1, "/oic/d")
    publisher = EventPublisher(api, jetstream=True)
    subject = EventCodec().encode(good).subject
    await publisher.publish(good)
    await api.ask(subject, b"\xff\xff\xff")
    broken = bytearray(EventCodec().encode(good).payload)
    broken[-5:] = b"\xff" * 5
    await api.ask(subject, bytes(broken))
    await publisher.publish(event("resourcechanged", D1, "/oic/d", version=1))

    for _ in range(2):
        writer = DeadLetterWriter(api, stream)
        found = await read_all(api, stream, dead_letters=writer)
        assert [event.version for event in found] == [0, 1]
        assert writer.count == 2

    async with DeadLetters(Access(url=server.url), DEAD_STREAM) as dead:
        letters = await dead.all()
    assert [letter.original_sequence for letter in letters] == [2, 3]
    assert {letter.original_subject for letter in letters} == {subject}
    assert letters[0].payload == b"\xff\xff\xff"
    assert "cannot read the event" in letters[0].reason


async def test_reader_goes_on_when_nobody_keeps_dead_letters(api, caplog):
    await api.request("STREAM.CREATE.EVENTS", {"name": "EVENTS", "subjects": ["events.>"]})
    await api.ask(f"events.{D1}.metadata.devicemetadataupdated", b"bogus")

    found = await read_all(api, "EVENTS", dead_letters=DeadLetterWriter(api, "EVENTS"))

    assert found == []
    assert "cannot keep a dead letter" in caplog.text


async def test_queue_group_shares_the_events(api, stream):
    first, second = [], []
    await subscribe(api, "events.>", first.append, queue="workers")
    await subscribe(api, "events.>", second.append, queue="workers")
    await api.connection.flush()

    await publish_corpus(api)
    await until(lambda: len(first) + len(second) == 52)

    assert first
    assert second


async def test_golden_vector_travels_through_a_stream(api, stream):
    subject = f"events.{D1}.resources.4a84ef28-8616-5b57-9ae7-7b3e497f307b.resourcechanged"
    await api.ask(subject, GOLDEN)

    (found,) = await read_all(api, stream, codec=EventCodec(Generation.Y2021))

    assert (found.version, found.message.content.data.hex()) == (7, "a1617601")
