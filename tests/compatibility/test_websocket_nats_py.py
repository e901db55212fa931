"""nats-py and aiohttp over WebSocket: libraries that know nothing of either server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator

import aiohttp
import nats
import nats.errors
import nats.js.errors
import pytest
from nats.aio.client import Client

from tests.compatibility.certificates import Authority
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import websocket_url
from tests.compatibility.wire import TIMEOUT_SECONDS, connect_line

LARGE_BYTES = 900_000

pytestmark = [
    # nats-py hands aiohttp a timeout in a form that aiohttp is about to give up.
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float' is deprecated:DeprecationWarning"),
    # It forgets the session of a connection that was refused or lost.
    pytest.mark.filterwarnings("ignore:Unclosed client session:ResourceWarning"),
]

OPTIONS = {"allow_reconnect": False, "connect_timeout": int(TIMEOUT_SECONDS)}


@pytest.fixture(autouse=True)
def forgotten_sessions() -> Iterator[None]:
    """Let what nats-py forgets be found here and not in the middle of another test."""
    yield
    gc.collect()


@pytest.fixture
async def page(websocket_server: ServerProcess) -> AsyncIterator[Client]:
    connected = await nats.connect(websocket_url(websocket_server), **OPTIONS)
    yield connected
    await connected.close()


@pytest.fixture
async def wired(websocket_server: ServerProcess) -> AsyncIterator[Client]:
    connected = await nats.connect(websocket_server.url, **OPTIONS)
    yield connected
    await connected.close()


# nats-py


async def test_publish_and_subscribe(page: Client, wired: Client) -> None:
    for publisher, receiver in ((page, wired), (wired, page), (page, page)):
        subscription = await receiver.subscribe("greetings.*")
        await receiver.flush()
        await publisher.publish("greetings.one", b"hello", headers={"Colour": "green"})

        message = await subscription.next_msg(timeout=TIMEOUT_SECONDS)

        assert (message.subject, message.data, message.headers) == ("greetings.one", b"hello", {"Colour": "green"})
        await subscription.unsubscribe()


async def test_many_messages_keep_their_order(page: Client, wired: Client) -> None:
    subscription = await page.subscribe("numbers")
    await page.flush()
    for number in range(5_000):
        await wired.publish("numbers", b"%d" % number)

    received = [int((await subscription.next_msg(timeout=TIMEOUT_SECONDS)).data) for _ in range(5_000)]

    assert received == list(range(5_000))


async def test_request_and_reply(page: Client, wired: Client) -> None:
    async def answer(message) -> None:
        await message.respond(message.data.upper())

    await page.subscribe("shout", cb=answer)
    await page.flush()

    reply = await wired.request("shout", b"hello", timeout=TIMEOUT_SECONDS)

    assert reply.data == b"HELLO"


async def test_request_without_responders(page: Client) -> None:
    with pytest.raises(nats.errors.NoRespondersError):
        await page.request("nobody.there", b"", timeout=TIMEOUT_SECONDS)


async def test_large_messages(page: Client) -> None:
    body = bytes(range(256)) * (LARGE_BYTES // 256)
    subscription = await page.subscribe("large")
    await page.publish("large", body)

    assert (await subscription.next_msg(timeout=TIMEOUT_SECONDS)).data == body


async def test_drain_hands_over_what_is_under_way(page: Client) -> None:
    received = []

    async def note(message) -> None:
        received.append(message.data)

    await page.subscribe("draining", cb=note)
    for number in range(100):
        await page.publish("draining", b"%d" % number)
    await page.drain()

    assert len(received) == 100


async def test_wrong_password_is_an_error(start_once) -> None:
    server = start_once(websocket_config(rest="authorization { user: ada, password: secret }"))
    with pytest.raises(nats.errors.Error, match="Authorization"):
        await nats.connect(websocket_url(server), user="ada", password="wrong", **OPTIONS)

    connected = await nats.connect(websocket_url(server), user="ada", password="secret", **OPTIONS)
    await connected.close()


async def test_cookie_logs_in(start_once) -> None:
    rest = "authorization { user: ada, password: secret }"
    server = start_once(websocket_config('user_cookie: "who", pass_cookie: "what"', rest))

    connected = await nats.connect(
        websocket_url(server), ws_connection_headers={"Cookie": ["who=ada; what=secret"]}, **OPTIONS
    )

    await connected.flush()
    await connected.close()


async def test_streams_and_consumers(start_server) -> None:
    server = start_server(["-js", "-sd", "store"], websocket_config("compress: true"))
    connected = await nats.connect(websocket_url(server), **OPTIONS)
    stream = connected.jetstream()
    await stream.add_stream(name="ORDERS", subjects=["orders.>"])
    for number in range(50):
        await stream.publish(f"orders.{number}", b"x" * 2_000)
    subscription = await stream.pull_subscribe("orders.>", durable="reader")

    messages = await subscription.fetch(50, timeout=TIMEOUT_SECONDS)
    for message in messages:
        await message.ack_sync(timeout=TIMEOUT_SECONDS)

    assert [message.metadata.sequence.stream for message in messages] == list(range(1, 51))
    info = await subscription.consumer_info()
    assert (info.num_pending, info.num_ack_pending) == (0, 0)
    bucket = await stream.create_key_value(bucket="settings")
    await bucket.put("colour", b"green")
    assert (await bucket.get("colour")).value == b"green"
    await connected.close()


async def test_tls(start_once, secure_config, authority: Authority) -> None:
    server = start_once(secure_config())
    url = websocket_url(server).replace("127.0.0.1", "localhost")

    connected = await nats.connect(url, tls=authority.context(), **OPTIONS)

    subscription = await connected.subscribe("secret")
    await connected.publish("secret", b"hello")
    assert (await subscription.next_msg(timeout=TIMEOUT_SECONDS)).data == b"hello"
    await connected.close()


async def test_client_comes_back_to_a_server_that_was_restarted(start_server) -> None:
    first: ServerProcess = start_server(config=websocket_config())
    url = websocket_url(first)
    port = url.rpartition(":")[2]
    returned = asyncio.Event()

    async def note() -> None:
        returned.set()

    connected = await nats.connect(
        url,
        reconnected_cb=note,
        reconnect_time_wait=0.05,
        max_reconnect_attempts=-1,
        connect_timeout=int(TIMEOUT_SECONDS),
    )
    await connected.subscribe("after")
    await connected.flush()
    await asyncio.to_thread(first.stop)
    start_server(config=websocket_config().replace("127.0.0.1:-1", f"127.0.0.1:{port}"))

    await asyncio.wait_for(returned.wait(), TIMEOUT_SECONDS)
    assert connected.is_connected
    await connected.close()


# aiohttp, which compresses and checks every frame


@pytest.mark.parametrize("compress", [0, 15])
async def test_aiohttp_speaks_the_same_frames(start_once, compress: int) -> None:
    server = start_once(websocket_config("compress: true"))
    body = b"abcdefgh" * 50_000
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(websocket_url(server), compress=compress, max_msg_size=0) as socket,
    ):
        assert bool(socket.compress) == bool(compress)
        assert (await socket.receive_bytes()).startswith(b"INFO {")
        await socket.send_bytes(connect_line(verbose=False) + b"SUB big 1\r\n")
        await socket.send_str(f"PUB big {len(body)}\r\n{body.decode()}\r\n")
        received = b""
        expected = b"MSG big 1 %d\r\n%b\r\n" % (len(body), body)
        while len(received) < len(expected):
            received += without_pings(await socket.receive_bytes(timeout=TIMEOUT_SECONDS))
        assert received == expected

        await socket.ping(b"still there?")
        await socket.send_bytes(b"PING\r\n")
        while not (answer := without_pings(await socket.receive_bytes(timeout=TIMEOUT_SECONDS))):
            pass
        assert answer == b"PONG\r\n"
        assert await socket.close(code=1000, message=b"done")
        assert socket.close_code == 1000


def without_pings(data: bytes) -> bytes:
    """Leave out what a server sends two seconds after CONNECT, if the test has taken so long."""
    return data.replace(b"PING\r\n", b"")


async def test_aiohttp_is_told_why_it_is_closed(start_once) -> None:
    server = start_once(websocket_config(rest="max_payload: 10"))
    async with aiohttp.ClientSession() as session, session.ws_connect(websocket_url(server)) as socket:
        await socket.receive_bytes()
        await socket.send_bytes(connect_line(verbose=False) + b"PUB a 11\r\n")
        messages = [message async for message in socket]

        assert [message.data for message in messages] == [b"-ERR 'Maximum Payload Violation'\r\n"]
        assert socket.close_code == 1009
