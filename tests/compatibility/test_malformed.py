"""Malformed input: the server refuses it in words of the catalogue or in silence, and goes on serving the others.

`JETLAKE_FUZZ_EXAMPLES` sets the number of examples of a longer run.
"""

from __future__ import annotations

import os
import re
import socket
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.compatibility.answers import SENTINEL, read_answer
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

EXAMPLES_SETTING = "JETLAKE_FUZZ_EXAMPLES"
EXAMPLES_DEFAULT = 150

# A connection that is silent for so long waits for the rest of a payload or of a line.
QUIET_SECONDS = 0.03

KNOWN_ANSWERS = re.compile(
    rb"(\+OK|PONG|INFO \{.*\} |-ERR '(Unknown Protocol Operation|maximum control line exceeded"
    rb"|Maximum Payload Violation|Invalid Subject|Invalid Publish Subject|Authorization Violation"
    rb"|invalid client protocol|no responders requires headers support"
    rb"|Permissions Violation for (Publish|Subscription) .*)')\r\n|H?MSG .*",
    re.DOTALL,
)

OPERATIONS = [b"PUB", b"HPUB", b"SUB", b"UNSUB", b"PING", b"PONG", b"CONNECT", b"INFO", b"MSG", b"+OK", b"-ERR", b"LS+"]
ARGUMENTS = [
    b"a",
    b"a.b",
    b"*",
    b">",
    b"1",
    b"0",
    b"12",
    b"-1",
    b"1048577",
    b"999999999",
    b"{}",
    b'{"verbose":1}',
    b"{",
]
OTHERS = [b" ", b" ", b" ", b"\t", b"\r\n", b"\r\n", b"\n", b"\r", b"NATS/1.0\r\n\r\n", b"x" * 4097, b"\x00", b"\xff"]
WORDS = st.sampled_from(OPERATIONS + ARGUMENTS + OTHERS)
INPUTS = st.one_of(st.binary(max_size=200), st.lists(WORDS, max_size=30).map(b"".join))

examples = settings(
    max_examples=int(os.environ.get(EXAMPLES_SETTING, EXAMPLES_DEFAULT)),
    derandomize=EXAMPLES_SETTING not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def expect_alive(server: ServerProcess, witness: RawClient) -> None:
    """The process runs, and a connection that was there before still works."""
    assert server.process.poll() is None, server.log()
    witness.expect_pong()


def answers_to(server: ServerProcess, data: bytes, connected: bool) -> list[bytes]:
    with server.client() as client:
        if connected:
            client.connect(headers=True)
        client.send(data + SENTINEL)
        frames, _ = read_answer(client, QUIET_SECONDS)
        return frames


@pytest.mark.timeout(0 if EXAMPLES_SETTING in os.environ else 120)
@examples
@given(data=INPUTS, connected=st.booleans())
def test_any_input_gets_known_answers_and_the_server_lives(
    server: ServerProcess, witness: RawClient, data: bytes, connected: bool
) -> None:
    frames = answers_to(server, data, connected)

    assert [frame for frame in frames if not KNOWN_ANSWERS.fullmatch(frame)] == []
    expect_alive(server, witness)


@pytest.fixture(scope="module")
def witness(server: ServerProcess):
    with server.client() as client:
        client.connect()
        yield client


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"*1\r\n$4\r\nPING\r\n",
    ],
    ids=["tls", "http", "ssh", "redis"],
)
def test_other_protocols_are_refused(server: ServerProcess, witness: RawClient, data: bytes) -> None:
    with server.client() as client:
        client.send(data)

        client.expect_error_and_closed("Unknown Protocol Operation")
    expect_alive(server, witness)


def test_connections_that_vanish_do_no_harm(server: ServerProcess, witness: RawClient) -> None:
    fragments = [
        b"",
        b"C",
        b"CONNECT {",
        b"PUB a 10\r\nabc",
        b"SUB a 1\r\nPUB a 2\r\nhi\r",
        b"HPUB a 12 1000000\r\nNATS",
    ]

    for fragment in fragments * 10:
        with server.client() as client:
            client.send(fragment)
            # Close with a reset rather than in good order.
            client._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    expect_alive(server, witness)


def test_unfinished_payloads_of_many_connections_do_not_stop_the_others(
    server: ServerProcess, witness: RawClient, subject: bytes
) -> None:
    clients = [server.client() for _ in range(50)]
    for client in clients:
        client.send(b"PUB %b 1000000\r\n" % subject + b"x" * 1000)

    witness.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    witness.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)
    for client in clients:
        client.close()
    expect_alive(server, witness)
