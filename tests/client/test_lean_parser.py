"""The parser that takes the place of nats-py's: it reads the same messages however the bytes are cut."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import nats
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.errors import ProtocolError

from jetlake.client.channel import Channel
from jetlake.client.lean_parser import LeanParser
from tests.conftest import REQUEST_S_MAX


class Heard(Client):
    """A client of nats-py without a connection, which notes what its parser hands over."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    async def _process_msg(self, sid, subject, reply, data, headers) -> None:
        self.heard.append((sid, subject, reply, data, headers))

    async def _process_ping(self) -> None:
        self.heard.append("PING")

    async def _process_pong(self) -> None:
        self.heard.append("PONG")

    async def _process_err(self, err_msg: str) -> None:
        self.heard.append(err_msg)

    async def _process_info(self, info, initial_connection=False) -> None:
        self.heard.append((info, initial_connection))


class Collected:
    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.notified = 0

    def notify(self) -> None:
        self.notified += 1


payloads = st.binary(max_size=200) | st.sampled_from([b"\r\n", b"MSG a 1 1\r\nx\r\n", b""])
messages = st.tuples(st.sampled_from([1, 2, 3]), st.booleans(), st.booleans(), payloads)
frames = st.one_of(messages, st.sampled_from([b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"-ERR 'Stale'\r\n"]))


def encoded(frame: Any) -> bytes:
    if isinstance(frame, bytes):
        return frame
    sid, has_reply, has_headers, payload = frame
    reply = b" answer.here" if has_reply else b""
    if not has_headers:
        return b"MSG some.subject %d%s %d\r\n%s\r\n" % (sid, reply, len(payload), payload)
    headers = b"NATS/1.0\r\nA: b\r\n\r\n"
    sizes = (len(headers), len(headers) + len(payload))
    return b"HMSG some.subject %d%s %d %d\r\n%s%s\r\n" % (sid, reply, *sizes, headers, payload)


def parts_of(frame: Any) -> tuple[bytes, bytes, bytes, bytes]:
    _, has_reply, has_headers, payload = frame
    headers = b"NATS/1.0\r\nA: b\r\n\r\n" if has_headers else b""
    return b"some.subject", b"answer.here" if has_reply else b"", headers, payload


@given(frames=st.lists(frames, max_size=12), cuts=st.lists(st.integers(0, 3000), max_size=8))
def test_messages_are_the_same_however_they_are_cut(frames, cuts):
    client, sink = Heard(), Collected()
    received: list[Any] = []
    parser = LeanParser.of(client)
    parser.sinks[b"1"] = sink
    parser.receivers[b"2"] = lambda *parts: received.append(parts)
    data = b"".join(map(encoded, frames))
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    async def feed() -> None:
        for start, end in itertools.pairwise(edges):
            await parser.parse(data[start:end])

    asyncio.run(feed())

    of_sid = {
        sid: [parts_of(each) for each in frames if isinstance(each, tuple) and each[0] == sid] for sid in (1, 2, 3)
    }
    assert sink.messages == of_sid[1]
    assert received == of_sid[2]
    others = [(s, r, h or None, p) for _, s, r, p, h in (each for each in client.heard if isinstance(each, tuple))]
    assert others == [(s, r, h or None, p) for s, r, h, p in of_sid[3]]
    words = [each for each in client.heard if isinstance(each, str)]
    spoken = {b"PING\r\n": "PING", b"PONG\r\n": "PONG", b"-ERR 'Stale'\r\n": "'stale'"}
    assert words == [spoken[each] for each in frames if each in spoken]
    assert client.stats["in_msgs"] == len(of_sid[1]) + len(of_sid[2])


@pytest.mark.parametrize(
    "data",
    [
        b"HELLO world\r\n",
        b"MSG a\r\n",
        b"MSG a 1 x\r\n",
        b"HMSG a 1 r 5 x\r\n",
        b"HMSG a 1\r\n",
        b"INFO {\r\n",
        b"x" * 70_000,
    ],
)
async def test_what_is_not_the_protocol_is_refused(data):
    with pytest.raises(ProtocolError):
        await LeanParser.of(Heard()).parse(data)


@given(cut=st.integers(1, 60))
def test_what_the_old_parser_had_read_is_taken_over(cut):
    client = Heard()
    data = b"MSG some.subject 3 answer.here 5\r\nhello\r\n" * 2

    async def feed() -> None:
        await client._ps.parse(data[:cut])
        await LeanParser.of(client).parse(data[cut:])

    asyncio.run(feed())

    assert client.heard == [(3, b"some.subject", b"answer.here", b"hello", None)] * 2


async def test_a_connection_has_one_channel_whose_requests_are_answered_or_expire(url):
    connection = await nats.connect(url)
    channel = Channel.of(connection)

    assert Channel.of(connection) is channel
    reply = await channel.request("$JS.API.INFO", timeout_s=REQUEST_S_MAX)
    assert b"account_info_response" in reply.data
    nobody = await channel.request("nobody.listens", timeout_s=REQUEST_S_MAX)
    assert nobody.nobody_answers
    subscription = await connection.subscribe("silent")
    await connection.flush()
    with pytest.raises(TimeoutError):
        await channel.request("silent", timeout_s=0.2)
    await subscription.unsubscribe()
    assert not channel._waiting
    await connection.close()
