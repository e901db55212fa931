"""Events to a server: core mode, JetStream mode, retries."""

import asyncio
from functools import partial

import pytest

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.devices.codec import EventCodec
from jetlake.devices.publisher import WRONG_LAST_SEQUENCE, EventPublisher, ExpectedSequence
from jetlake.errors import ApiError, ClientError
from tests.devices.samples import D1, R1, corpus, event
from tests.devices.waiting import until


async def test_core_mode_publishes_and_nothing_is_kept(api):
    received = []
    await api.connection.subscribe("events.>", cb=partial(collect, received))
    publisher = EventPublisher(api, jetstream=False)

    for message in corpus():
        assert await publisher.publish(message) is None
    await api.connection.flush()

    assert len(received) == 52
    # Nothing of ours goes with an event, and nobody is asked to answer.
    assert all(not message.headers and not message.reply for message in received)
    assert await api.stream_names() == []


async def test_jetstream_mode_gives_growing_sequences(api, stream, count):
    publisher = EventPublisher(api, jetstream=True)

    sequences = [(await publisher.publish(message)).sequence for message in corpus()]

    assert sequences == list(range(1, 53))
    assert await count(stream) == 52


async def test_stream_keeps_also_what_was_published_in_core_mode(api, stream, count):
    await EventPublisher(api, jetstream=False).publish(corpus()[0])
    # Nobody says when it is stored.
    for _ in range(3000):
        if await count(stream):
            break
        await asyncio.sleep(0.01)

    assert await count(stream) == 1


async def test_same_message_id_is_stored_once_and_none_is_not(api, stream, count):
    publisher = EventPublisher(api, jetstream=True)
    message = corpus()[0]

    first = await publisher.publish(message, message_id="m1")
    again = await publisher.publish(message, message_id="m1")
    other = await publisher.publish(message)

    assert (again.sequence, again.is_duplicate) == (first.sequence, True)
    assert (other.sequence, other.is_duplicate) == (2, False)
    assert await count(stream) == 2


async def test_without_a_stream_publishing_fails(api):
    with pytest.raises(ClientError, match="no stream is listening on subject"):
        await EventPublisher(api, jetstream=True).publish(corpus()[0])


async def test_with_the_documentations_stream_publishing_fails_and_the_stream_stays_empty(server, api, count):
    await api.request("STREAM.CREATE.events", {"name": "events", "subjects": ["events.*"]})
    async with open_api(Access(url=server.url)) as impatient:
        publisher = EventPublisher(impatient, jetstream=True)
        with pytest.raises(ClientError, match="no stream is listening"):
            await publisher.publish(corpus()[0])
        received = []
        await api.connection.subscribe("events.>", cb=partial(collect, received))
        await api.connection.flush()
        # Somebody listens, so the server does not say that nobody does; only the time tells.
        impatient.access = Access(url=server.url, timeout_s=0.2)
        with pytest.raises(ClientError, match="no acknowledgement"):
            await publisher.publish(corpus()[0])

    await until(lambda: received)
    assert await count("events") == 0


async def test_expected_sequence_is_that_of_the_whole_aggregate(api, stream, count):
    publisher = EventPublisher(api, jetstream=True)
    changed = EventCodec().encode(event("resourcechanged", D1, "/oic/d"))
    updated = EventCodec().encode(event("resourceupdated", D1, "/oic/d", version=1))
    pattern = f"events.{D1}.resources.{R1}.>"
    await publisher.publish(event("resourcechanged", D1, "/light/1"))

    stored = await publisher.publish_encoded(changed, expected=ExpectedSequence(pattern, 0))
    with pytest.raises(ApiError) as refused:
        await publisher.publish_encoded(updated, expected=ExpectedSequence(pattern, 0))
    following = await publisher.publish_encoded(updated, expected=ExpectedSequence(pattern, stored.sequence))

    assert refused.value.error_code == WRONG_LAST_SEQUENCE
    assert (stored.sequence, following.sequence) == (2, 3)
    assert await count(stream) == 3


async def test_server_without_jetstream_is_a_clear_error(start_server):
    plain = start_server()
    async with open_api(Access(url=plain.url)) as api:
        with pytest.raises(ClientError, match="no stream is listening"):
            await EventPublisher(api, jetstream=True).publish(corpus()[0])


async def test_literal_wildcard_in_a_subject_would_be_stored_by_the_server(api, stream, count):
    # Why device ids are checked before publishing: the server does not do it.
    await api.ask("events.*.metadata.devicemetadataupdated", b"x")

    assert await count(stream) == 1


async def collect(received, message):
    await asyncio.sleep(0)
    received.append(message)
