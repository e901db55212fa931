"""No number that a client sends stops the server, or keeps it from counting what there is.

`python -m tests.compatibility.extreme_numbers --seeds 2000` makes a long run of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compatibility import extreme_numbers
from tests.compatibility.consumers import Puller, create, sequences
from tests.compatibility.jetstream import JetStream, start_jetstream_server
from tests.compatibility.origins import publish_numbers, wait_for_messages
from tests.compatibility.server_process import ServerProcess

SEED_COUNT = 60

ALMOST_LAST = 2**64 - 616
"""The number of sequences behind it is less than what a stream takes from its sources in one turn."""

pytestmark = pytest.mark.jetlake


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("server")
    started = start_jetstream_server("jetlake", folder, folder / "store")
    yield started
    started.stop()


@pytest.fixture
def js(server: ServerProcess) -> Iterator[Puller]:
    client = Puller(server)
    yield client
    client.api("STREAM.DELETE.S")
    client.raw.close()


def test_sessions_made_by_chance_are_answered_to_the_end(server: ServerProcess) -> None:
    for seed in range(SEED_COUNT):
        extreme_numbers.play(server, seed)


@pytest.mark.parametrize(
    "request_body",
    [
        {"batch": -(2**63), "expires": 10**9},
        # Doubled, it overflows 64 bits and passes the check against `expires`.
        {"batch": 1, "expires": 10**9, "idle_heartbeat": 2**63 - 1},
        {"batch": 2**63 - 1, "expires": 2**63 - 1, "idle_heartbeat": 2**62 - 1, "max_bytes": 2**63 - 1},
    ],
)
def test_pull_request_is_served(js: Puller, request_body: dict[str, int]) -> None:
    consumer = create(js, "S", "a")

    assert sequences(consumer.answers(consumer.request(request_body), 1)) == [1]

    assert consumer.numbers().delivered == (1, 1)


def test_acknowledgement_after_a_delay_beyond_all_times_is_sampled(js: Puller) -> None:
    consumer = create(js, "S", "a", sample_freq="100")
    message = consumer.take_one()

    js.send(message.reply, f'-NAK {{"delay":{-(2**63)}}}'.encode())
    consumer.acknowledge(message)

    assert consumer.numbers().ack_floor == (1, 1)


def test_stream_with_sources_and_a_limit_may_begin_close_to_the_last_sequence(tmp_path: Path) -> None:
    # A server of its own, and two folders for what it writes: its start is a part of what must work.
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir()
    first = start_jetstream_server("jetlake", folders[0], tmp_path / "store")
    try:
        with JetStream(first) as js:
            js.create("O")
            publish_numbers(js, "O.a", 1)
            js.create("T", sources=[{"name": "O"}], first_seq=ALMOST_LAST, max_msgs=2)
            assert wait_for_messages(js, "T", 1)["last_seq"] == ALMOST_LAST
    finally:
        first.stop()

    second = start_jetstream_server("jetlake", folders[1], tmp_path / "store")

    try:
        with JetStream(second) as js:
            publish_numbers(js, "O.a", 1, first=2)
            assert wait_for_messages(js, "T", 2)["last_seq"] == ALMOST_LAST + 1
    finally:
        second.stop()
