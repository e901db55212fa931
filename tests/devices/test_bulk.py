"""Many events at once."""

import pytest

from jetlake.client.raw_connection import ConnectionSettings
from jetlake.devices.bulk import WINDOW_EVENTS, BulkPublisher
from jetlake.devices.consumer import read_events
from jetlake.errors import ClientError
from tests.devices.samples import D1, event

EVENTS = WINDOW_EVENTS + 1000
"""More than may be on their way at once."""


def changes(number):
    return (event("resourcechanged", D1, "/oic/d", version=version) for version in range(number))


async def test_all_events_are_stored_once_and_in_order(server, api, stream):
    with BulkPublisher(ConnectionSettings(url=server.url), stream=stream) as publisher:
        report = publisher.publish(changes(EVENTS))
        again = publisher.publish(changes(3))

    assert (report.stored, report.duplicates, report.last_sequence) == (EVENTS, 0, EVENTS)
    assert (again.stored, again.last_sequence) == (3, EVENTS + 3)
    versions = [event.version async for event in read_events(api, stream, to_end=True)]
    assert versions == [*range(EVENTS), 0, 1, 2]


async def test_broken_connection_is_made_again_and_nothing_is_stored_twice(server, api, stream, count):
    with BulkPublisher(ConnectionSettings(url=server.url)) as publisher:

        def breaking():
            for number, message in enumerate(changes(5000)):
                if number == 3000:
                    publisher._connection._socket.shutdown(2)
                yield message

        report = publisher.publish(breaking())

    assert report.stored == 5000
    assert await count(stream) == 5000


async def test_missing_stream_is_a_clear_error(server, api):
    with (
        BulkPublisher(ConnectionSettings(url=server.url)) as publisher,
        pytest.raises(ClientError, match="no stream is listening on subject"),
    ):
        publisher.publish(changes(3))


async def test_refusal_of_the_stream_is_a_clear_error(server, api, stream):
    with (
        BulkPublisher(ConnectionSettings(url=server.url), stream="OTHER") as publisher,
        pytest.raises(ClientError, match="the stream refused events"),
    ):
        publisher.publish(changes(3))
