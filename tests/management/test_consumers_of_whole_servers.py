"""Consumers, asked of nats-server and of ours with its real engine: the same bytes, before and after a restart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.management import consumer_cases, consumer_histories
from tests.management.api_cases import ApiStep
from tests.management.consumer_cases import PULL, PUSH, Case, create, messages
from tests.management.consumer_twins import NatsServerSide, differences, masked

pytestmark = [pytest.mark.compatibility, pytest.mark.nats_server, pytest.mark.jetlake]

CONFIGURATION = """
server_name: probe
jetstream { store_dir: store, max_mem: 1000000000, max_file: 10000000000 }
"""
KINDS = ("nats-server", "jetlake")
WAIT_S = 60.0

SOON_S = 4.0
"""After what a test does first, also on a machine that is busy."""

Start = Callable[[str], ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a server of either kind, each time in the same folder."""
    servers: list[ServerProcess] = []

    def start_with(kind: str) -> ServerProcess:
        folder = tmp_path / kind
        folder.mkdir(exist_ok=True)
        servers.append(start_server_process(kind, folder, config=CONFIGURATION))
        return servers[-1]

    yield start_with
    for server in servers:
        server.stop()


@pytest.mark.parametrize(
    "cases",
    [
        consumer_cases.subjects_and_names,
        consumer_histories.positions,
        consumer_histories.endpoints,
        consumer_histories.pauses,
        consumer_histories.unpins,
        consumer_histories.work_queues,
        consumer_histories.limits,
        consumer_histories.copies,
    ],
    ids=lambda cases: cases.__name__,
)
def test_requests_are_answered_alike(start: Start, cases: Callable[[], Iterator[Case]]) -> None:
    with start("nats-server").client() as theirs, start("jetlake").client() as ours:
        different = differences(NatsServerSide(theirs), NatsServerSide(ours), cases())

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


KEPT = [
    create(PULL, "DISK", "A"),
    create({**PULL, "durable_name": "B", "filter_subjects": ["d.a", "d.b"], "backoff": [5, 6]}, "DISK", "B"),
    create({**PULL, "mem_storage": True}, "DISK", "LOST"),
    create({**PULL, "durable_name": "P", "pause_until": "2100-01-01T00:00:00+02:00"}, "DISK", "P"),
    create({**PULL, "priority_policy": "overflow", "priority_groups": ["g"], "metadata": {"a": "b"}}, "DISK", "G"),
    create({**PUSH, "durable_name": "PUSH", "deliver_policy": "new"}, "DISK", "PUSH"),
    create({**PUSH, "direct": True}, "DISK", "HIDDEN"),
    create({**PULL, "description": "other"}, "DISK", "A"),
    ApiStep("CONSUMER.PAUSE.DISK.B", b'{"pause_until":"2100-01-01T00:00:00Z"}'),
    create(PULL, "DISK", "GONE"),
    ApiStep("CONSUMER.DELETE.DISK.GONE"),
]
ASKED_AFTER = [ApiStep("CONSUMER.NAMES.DISK"), ApiStep("CONSUMER.LIST.DISK"), ApiStep("STREAM.INFO.DISK")]


def test_consumers_are_there_again_after_a_restart(start: Start) -> None:
    answers = {}

    for kind in KINDS:
        server = start(kind)
        with server.client() as client:
            side = NatsServerSide(client)
            side.begin(["DISK"])
            for step in [*messages("DISK", "a", "b", "c"), *KEPT]:
                side.request(step)
        server.stop()
        with start(kind).client() as client:
            side = NatsServerSide(client)
            answers[kind] = [masked(side.request(step)) for step in ASKED_AFTER]

    assert answers["jetlake"] == answers["nats-server"]
    assert json.loads(answers["jetlake"][0])["consumers"] == ["A", "B", "G", "P", "PUSH"]


@pytest.mark.parametrize("kind", KINDS)
def test_consumer_that_nobody_uses_is_deleted_and_told(start: Start, kind: str) -> None:
    with start(kind).client() as client:
        side = NatsServerSide(client)
        side.begin(["S"])
        client.send(b"SUB $JS.EVENT.ADVISORY.CONSUMER.DELETED.> 2\r\n")
        side.request(create({**PULL, "inactive_threshold": int(SOON_S * 1e9)}))

        head, _, body = client.read_frame(WAIT_S).partition(b"\r\n")
        after = side.request(ApiStep("CONSUMER.INFO.S.C"))

    assert head.split()[1] == b"$JS.EVENT.ADVISORY.CONSUMER.DELETED.S.C"
    assert json.loads(body)["action"] == "delete"
    assert b'"err_code":10014' in after


@pytest.mark.parametrize("kind", KINDS)
def test_end_of_a_pause_is_told(start: Start, kind: str) -> None:
    with start(kind).client() as client:
        side = NatsServerSide(client)
        side.begin(["S"])
        side.request(create(PULL))
        client.send(b"SUB $JS.EVENT.ADVISORY.CONSUMER.PAUSE.> 2\r\n")
        client.send(b"PUB $JS.API.CONSUMER.PAUSE.S.C - %d\r\n%s\r\n" % _soon())

        told = [json.loads(client.read_frame(WAIT_S).partition(b"\r\n")[2])["paused"] for _ in range(2)]

    assert told == [True, False]


def _soon() -> tuple[int, bytes]:
    """Return the request for a short pause, and before it its length."""
    until = datetime.fromtimestamp(time.time() + SOON_S, UTC).isoformat()
    body = json.dumps({"pause_until": until}).encode()
    return len(body), body
