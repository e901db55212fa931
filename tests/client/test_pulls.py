"""Messages of a stream, by one request or by a reader, on both servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.client.pulls import Start, pull, read, server_status
from jetlake.errors import ClientError
from tests.lossy_proxy import LossyProxy
from tests.waiting import WAIT_S_MAX, until

TIMEOUT_S = 4.0
"""So that what is lost is missed soon, and an answer that is only late on a busy machine is not taken for lost."""


@pytest.fixture
async def stream(api: Api) -> str:
    await api.find("STREAM.DELETE.READ")
    await api.request("STREAM.CREATE.READ", {"name": "READ", "subjects": ["read.*"]})
    for number in range(1, 1201):
        await api.connection.publish(f"read.{number % 3}", b"%d" % number)
    await api.flush()
    while (await api.request("STREAM.INFO.READ"))["state"]["messages"] < 1200:
        await api.flush()
    return "READ"


async def read_all(messages) -> list[int]:
    async with aclosing(messages) as given:
        return [int(message.data) async for message in given]


async def test_reader_gives_everything_in_order_and_leaves_nothing(api: Api, stream: str):
    assert await read_all(read(api, stream, to_end=True)) == list(range(1, 1201))
    assert await api.consumer_names(stream) == []


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Start(sequence=1199), [1199, 1200]),
        (Start(last=True), [1200]),
        (Start(last_per_subject=True), [1198, 1199, 1200]),
        (Start(new=True), []),
        (Start(time="2020-01-01T00:00:00Z"), list(range(1, 1201))),
    ],
)
async def test_reader_begins_where_it_was_wanted(api: Api, stream: str, start: Start, expected: list[int]):
    assert await read_all(read(api, stream, start=start, to_end=True)) == expected


async def test_reader_takes_some_subjects(api: Api, stream: str):
    found = await read_all(read(api, stream, subjects=["read.0", "read.1"], to_end=True))

    assert found == [number for number in range(1, 1201) if number % 3 != 2]


async def test_reader_that_is_closed_early_leaves_nothing(api: Api, stream: str):
    async with aclosing(read(api, stream)) as messages:
        async for _ in messages:
            break

    assert await api.consumer_names(stream) == []


async def test_reader_goes_on_after_its_consumer_was_lost(api: Api, stream: str):
    seen = []
    async with aclosing(read(api, stream)) as messages:
        async for message in messages:
            seen.append(int(message.data))
            if len(seen) == 600:
                (name,) = await api.consumer_names(stream)
                await api.request(f"CONSUMER.DELETE.{stream}.{name}")
            if len(seen) == 1200:
                break

    assert seen == list(range(1, 1201))


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[LossyProxy]:
    async with LossyProxy(url) as started:
        yield started


@pytest.fixture
async def far(proxy: LossyProxy) -> AsyncIterator[Api]:
    """The API behind the proxy."""
    async with open_api(Access(url=proxy.url, timeout_s=TIMEOUT_S), reconnect=True) as opened:
        yield opened


def cut_once_at(proxy: LossyProxy, number: int) -> None:
    """Lose what a consumer delivers from its message of this number on, until the connection is cut."""
    delivered = 0

    def cut() -> None:
        proxy.lose = lambda _frame: False
        proxy.cut()

    def lose(frame: bytes) -> bool:
        nonlocal delivered
        delivered += b" $JS.ACK." in frame
        if delivered == number:
            asyncio.get_running_loop().call_soon(cut)
        return delivered >= number

    proxy.lose = lose


@pytest.mark.parametrize("number", [1, 300, 1100])
async def test_reader_gives_what_was_lost_with_its_connection(proxy: LossyProxy, far: Api, stream: str, number: int):
    cut_once_at(proxy, number)

    async with asyncio.timeout(WAIT_S_MAX):
        found = await read_all(read(far, stream, to_end=True))

    assert found == list(range(1, 1201))
    assert proxy.lost


async def test_reader_that_follows_gives_what_was_lost_with_its_connection(
    proxy: LossyProxy, far: Api, api: Api, stream: str
):
    cut_once_at(proxy, 1)

    async with aclosing(read(far, stream, start=Start(new=True))) as messages:
        reading = asyncio.ensure_future(anext(messages))
        await until(lambda: api.consumer_names(stream))
        for number in (1201, 1202):
            await api.connection.publish("read.0", b"%d" % number)
        async with asyncio.timeout(WAIT_S_MAX):
            found = [int((await reading).data), int((await anext(messages)).data)]

    assert found == [1201, 1202]
    assert proxy.lost


async def test_reader_of_last_values_goes_on_with_last_values(proxy: LossyProxy, far: Api, api: Api, stream: str):
    for number, subject in ((1201, "read.8"), (1202, "read.9"), (1203, "read.9")):
        await api.connection.request(subject, b"%d" % number)
    cut_once_at(proxy, 5)

    async with asyncio.timeout(WAIT_S_MAX):
        found = await read_all(read(far, stream, start=Start(last_per_subject=True), to_end=True))

    assert found == [1198, 1199, 1200, 1201, 1203]
    assert proxy.lost


async def test_reader_ends_when_the_rest_is_purged(api: Api, stream: str):
    seen = []

    async with asyncio.timeout(WAIT_S_MAX), aclosing(read(api, stream, to_end=True)) as messages:
        async for message in messages:
            seen.append(int(message.data))
            if len(seen) == 500:
                await api.request(f"STREAM.PURGE.{stream}")

    assert seen == list(range(1, 501))


async def test_stream_that_is_not_there_cannot_be_read(api: Api):
    with pytest.raises(ClientError, match="stream not found"):
        await read_all(read(api, "NOWHERE", to_end=True))


async def test_one_request_ends_when_there_is_no_more(api: Api, stream: str):
    for name, subject in (("c", "read.0"), ("empty", "read.9")):
        config = {"durable_name": name, "ack_policy": "explicit", "filter_subject": subject, "max_ack_pending": 3}
        await api.request(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})

    taken = await read_all(pull(api, stream, "c", batch=10, expires_s=0.3))
    nothing = await read_all(pull(api, stream, "empty", batch=1, no_wait=True))

    assert (taken, nothing) == ([3, 6, 9], [])


@pytest.mark.parametrize(
    ("reply", "data", "status"),
    [
        ("", b"", "100"),
        ("$JS.FC.ORDERS.push.x", b"", "100"),
        ("$JS.ACK.ORDERS.push.1.1.1.1.0", b"", None),
        # An import of another account may give the acknowledgement another subject.
        ("_R_.x", b"", None),
        ("", b"x", None),
    ],
)
def test_status_is_known_by_its_reply_subject(reply: str, data: bytes, status: str | None):
    message = Msg(Client(), subject="a", reply=reply, data=data, headers={"Status": "100"})

    assert server_status(message) == status


@pytest.mark.parametrize("status", ["shipped", "100", "404", "408", "409", "503"])
async def test_empty_message_with_a_header_named_status_is_no_status_of_the_server(api: Api, status: str):
    name, subject = f"STATUS_{status}", f"status.{status}"
    await api.request(f"STREAM.CREATE.{name}", {"name": name, "subjects": [subject]})
    for payload, headers in ((b"1", None), (b"", {"Status": status}), (b"3", None)):
        await api.connection.request(subject, payload, headers=headers)
    config = {"durable_name": "c", "ack_policy": "explicit"}
    await api.request(f"CONSUMER.DURABLE.CREATE.{name}.c", {"stream_name": name, "config": config})

    async with asyncio.timeout(WAIT_S_MAX):
        pulled = [message.data async for message in pull(api, name, "c", batch=10, no_wait=True)]
        found = [message.data async for message in read(api, name, to_end=True)]

    assert pulled == found == [b"1", b"", b"3"]


async def test_consumer_that_cannot_be_asked_is_told(api: Api, stream: str):
    config = {"durable_name": "push", "ack_policy": "none", "deliver_subject": "somewhere"}
    await api.request(f"CONSUMER.DURABLE.CREATE.{stream}.push", {"stream_name": stream, "config": config})

    with pytest.raises(ClientError, match="has no consumer none that is pulled"):
        await read_all(pull(api, stream, "none"))
    with pytest.raises(ClientError, match="push"):
        await read_all(pull(api, stream, "push", expires_s=0.3))
