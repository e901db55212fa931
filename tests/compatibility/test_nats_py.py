"""The client library nats-py does its ordinary work."""

from __future__ import annotations

import asyncio

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.compatibility.server_process import ServerProcess


@pytest.fixture
def name(subject: bytes) -> str:
    return subject.decode()


async def ignore(_: Exception) -> None:
    """Take an error that the test expects."""


async def test_messages_arrive_in_order(library_client: Client, name: str) -> None:
    subscription = await library_client.subscribe(f"{name}.*")

    for number in range(100):
        await library_client.publish(f"{name}.{number}", b"%d" % number)

    received = [await subscription.next_msg(timeout=60) for _ in range(100)]
    assert [(message.subject, message.data) for message in received] == [
        (f"{name}.{number}", b"%d" % number) for number in range(100)
    ]


async def test_queue_group_shares_the_messages(library_client: Client, name: str) -> None:
    counts = [0, 0, 0]
    done = asyncio.Event()

    def counter(member: int):
        async def count(_: Msg) -> None:
            counts[member] += 1
            if sum(counts) == 300:
                done.set()

        return count

    for member in range(3):
        await library_client.subscribe(name, queue="workers", cb=counter(member))
    for _ in range(300):
        await library_client.publish(name, b"work")

    await asyncio.wait_for(done.wait(), timeout=60)
    await library_client.flush()
    assert sum(counts) == 300
    assert min(counts) > 0


async def test_headers_arrive(library_client: Client, name: str) -> None:
    subscription = await library_client.subscribe(name)

    await library_client.publish(name, b"hello", headers={"Colour": "green", "Empty": "", "Word": "näme"})

    message = await subscription.next_msg(timeout=60)
    assert message.data == b"hello"
    assert message.headers == {"Colour": "green", "Empty": "", "Word": "näme"}


async def test_request_is_answered(library_client: Client, name: str) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(message.data[::-1])

    await library_client.subscribe(name, cb=answer)

    responses = await asyncio.gather(
        *(library_client.request(name, b"number %d" % number, timeout=60) for number in range(50))
    )

    assert [response.data for response in responses] == [(b"number %d" % number)[::-1] for number in range(50)]


async def test_request_in_the_old_style_is_answered(library_client: Client, name: str) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b"pong")

    await library_client.subscribe(name, cb=answer)

    response = await library_client.request(name, b"ping", timeout=60, old_style=True)

    assert response.data == b"pong"


async def test_request_without_responder_fails_at_once(library_client: Client, name: str) -> None:
    with pytest.raises(nats.errors.NoRespondersError):
        await library_client.request(name, b"anybody?", timeout=60)


async def test_unsubscribe_after_a_maximum(library_client: Client, name: str) -> None:
    received: list[bytes] = []

    async def receive(message: Msg) -> None:
        received.append(message.data)

    subscription = await library_client.subscribe(name, cb=receive)
    await subscription.unsubscribe(limit=3)
    end = await library_client.subscribe(f"{name}.end")
    for number in range(10):
        await library_client.publish(name, b"%d" % number)
    await library_client.publish(f"{name}.end", b"")

    await end.next_msg(timeout=60)

    assert received == [b"0", b"1", b"2"]


async def test_drain_handles_what_is_under_way(server: ServerProcess, library_client: Client, name: str) -> None:
    receiver = await nats.connect(server.url, allow_reconnect=False)
    received: list[bytes] = []

    async def receive(message: Msg) -> None:
        await asyncio.sleep(0.001)
        received.append(message.data)

    await receiver.subscribe(name, cb=receive)
    await receiver.flush()
    for number in range(100):
        await library_client.publish(name, b"%d" % number)
    await library_client.flush()

    await receiver.drain()

    assert receiver.is_closed
    assert received == [b"%d" % number for number in range(100)]


async def test_payload_over_the_maximum_is_refused_by_the_client(library_client: Client, name: str) -> None:
    assert library_client.max_payload == 1_048_576

    with pytest.raises(nats.errors.MaxPayloadError):
        await library_client.publish(name, b"x" * (library_client.max_payload + 1))


async def test_wrong_password_is_an_authorization_error(start_server) -> None:
    server = start_server(flags=["--user", "ann", "--pass", "secret"])

    accepted = await nats.connect(server.url, user="ann", password="secret", allow_reconnect=False)
    await accepted.close()

    refused = Client()
    with pytest.raises(nats.errors.Error, match=r"(?i)authorization violation"):
        await refused.connect(server.url, user="ann", password="wrong", allow_reconnect=False, error_cb=ignore)
    await refused.close()


async def test_client_reconnects_after_a_restart_on_the_same_port(start_server, name: str) -> None:
    first = start_server()
    reconnected = asyncio.Event()

    async def on_reconnect() -> None:
        reconnected.set()

    client = await nats.connect(
        first.url,
        reconnected_cb=on_reconnect,
        error_cb=ignore,
        reconnect_time_wait=0.1,
        max_reconnect_attempts=-1,
    )
    subscription = await client.subscribe(name)
    await client.flush()

    first.stop()
    start_server(port=first.port)
    await asyncio.wait_for(reconnected.wait(), timeout=60)
    await client.publish(name, b"after")
    message = await subscription.next_msg(timeout=60)

    assert message.data == b"after"
    await client.close()
