"""Consumers and pull requests that are gone leave no memory behind, however late they were to be reminded of something.

The memory is that of the whole process, so the figures are rough; each limit is half of what was once left behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compatibility.consumers import Puller
from tests.compatibility.jetstream import API, SECOND_NS, start_jetstream_server

pytestmark = pytest.mark.jetlake

HOUR_NS = 3600 * SECOND_NS

WARM_UP_COUNT = 500
CONSUMER_COUNT = 2000
CONSUMER_BYTES_MAX = 700


@pytest.fixture
def js(tmp_path: Path) -> Iterator[Puller]:
    """A server of its own: nobody else changes its memory."""
    server = start_jetstream_server("jetlake", tmp_path)
    with Puller(server) as puller:
        yield puller
    server.stop()


def memory_bytes(js: Puller) -> int:
    lines = Path(f"/proc/{js.server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def create_and_delete(js: Puller, count: int) -> None:
    config = {"name": "C", "mem_storage": True, "ack_policy": "explicit", "inactive_threshold": HOUR_NS}
    for _ in range(count):
        answer = js.api("CONSUMER.CREATE.S.C", {"stream_name": "S", "config": config, "action": "create"})
        assert "error" not in answer, answer
        assert js.api("CONSUMER.DELETE.S.C")["success"]


def test_deleted_consumer_does_not_wait_for_its_inactive_threshold(js: Puller) -> None:
    js.create("S", storage="memory")
    create_and_delete(js, WARM_UP_COUNT)
    before = memory_bytes(js)

    create_and_delete(js, CONSUMER_COUNT)

    assert (memory_bytes(js) - before) / CONSUMER_COUNT < CONSUMER_BYTES_MAX


def test_expired_pull_request_is_answered_though_another_one_waits_for_hours(js: Puller) -> None:
    js.create("S", storage="memory")
    config = {"durable_name": "C", "ack_policy": "explicit"}
    js.api("CONSUMER.CREATE.S.C", {"stream_name": "S", "config": config, "action": "create"})
    patient = js.new_inbox()
    js.send(f"{API}CONSUMER.MSG.NEXT.S.C", b'{"expires": %d}' % HOUR_NS, reply=patient)

    for _ in range(100):
        inbox = js.new_inbox()
        js.send(f"{API}CONSUMER.MSG.NEXT.S.C", b'{"expires": 1000000}', reply=inbox)
        assert js.next(inbox).status == "408 Request Timeout"

    js.publish("S.a", b"at last")
    assert js.next("S.a").data == b"at last"
