"""Malformed requests to the pages: to the parser in this process, and over sockets to the pages of a live server.

`JETLAKE_MALFORMED_HEADS` sets how many, `JETLAKE_MALFORMED_SEED` the seed; a failure shows the head.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import socket
from pathlib import Path

import jetlake
from jetlake.monitoring.http_request import BadRequestError, HttpRequest, check_first_line, find_end, read_head
from tests.monitoring.malformed_heads import MalformedHeads

HEADS = int(os.environ.get("JETLAKE_MALFORMED_HEADS", "20000"))
SEED = int(os.environ.get("JETLAKE_MALFORMED_SEED", "7"), 0)

# Of so many one goes over a socket, which takes some fifty times as long.
ONE_LIVE_OF = 20

STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3}) [A-Za-z ]+\r\n")
REFUSALS = {400, 431, 505}
STATUSES = REFUSALS | {200, 307, 404}

ANSWER_S_MAX = 60.0

# The allocator keeps some of what bursts needed.
GROWTH_BYTES_MAX = 16 * 1024 * 1024


def test_parser_reads_or_refuses_every_head() -> None:
    heads = MalformedHeads(SEED)
    for number in range(HEADS):
        head = heads.next()
        try:
            outcome = read(head)
        except Exception as error:
            raise AssertionError(f"head {number} of seed {SEED}: {head!r}") from error
        if isinstance(outcome, HttpRequest):
            assert outcome.path.startswith("/"), head
            assert outcome.method.isascii(), head
            assert len(outcome.parameters()) <= 100, head
        else:
            assert outcome in REFUSALS, head


def test_pages_answer_or_refuse_every_head() -> None:
    heads = MalformedHeads(SEED + 1)
    with jetlake.Server(monitor_port=0) as server:
        host, port = server.monitor_url.removeprefix("http://").split(":")
        address = (host, int(port))
        begun_bytes = 0
        answered = 0
        count = max(1, HEADS // ONE_LIVE_OF)
        for number in range(count):
            head = heads.next()
            answer = exchange(address, head)
            if answer:
                status = STATUS_LINE.match(answer)
                assert status, (head, answer[:200])
                assert int(status[1]) in STATUSES, (head, answer[:200])
                answered += 1
            if number == count // 10:
                begun_bytes = resident_bytes()
        grown_bytes = resident_bytes() - begun_bytes

        assert exchange(address, b"GET /healthz HTTP/1.0\r\n\r\n").endswith(b'{"status":"ok"}')
    assert answered > count // 10
    assert grown_bytes < GROWTH_BYTES_MAX


def read(head: bytes) -> HttpRequest | int:
    """Return the request, or the status it is refused with; one that is cut off is treated as if it ended there."""
    try:
        check_first_line(head)
        end = find_end(head)
        return read_head(head[:end] if end >= 0 else head)
    except BadRequestError as refusal:
        return refusal.status


def exchange(address: tuple[str, int], head: bytes) -> bytes:
    """Send a head and the end of this side, and return the answer; nothing where the connection is cut."""
    answer = b""
    with socket.create_connection(address, timeout=2 * ANSWER_S_MAX) as client, contextlib.suppress(ConnectionError):
        client.sendall(head)
        client.shutdown(socket.SHUT_WR)
        while piece := client.recv(65_536):
            answer += piece
    return answer


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
