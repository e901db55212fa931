"""What an interest stream still has after a restart: what a consumer has not read, or another stream not copied."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import Puller, sequences
from tests.compatibility.origins import (
    payloads,
    publish_numbers,
    wait_for_messages,
    wait_for_sources,
    wait_until,
)
from tests.compatibility.server_process import ServerProcess

start_jetstream = jetstream.start_jetstream

# Streams are opened one after the other, so each may be the first: the origin, and the one that has it as its source.
both_orders = pytest.mark.parametrize(("origin", "name"), [("A", "Z"), ("Z", "A")])
both_ends = pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])


@both_orders
@both_ends
def test_origin_has_what_was_not_copied_before_a_restart(
    start_jetstream: Callable[..., ServerProcess], tmp_path: Path, origin: str, name: str, end: signal.Signals
) -> None:
    server = start_jetstream(tmp_path / "store")
    with Puller(server) as js:
        js.create(origin, retention="interest")
        js.create(name, max_msgs=2, discard="new", sources=[{"name": origin}])
        wait_for_sources(js, name)
        publish_numbers(js, f"{origin}.a", 5)
        wait_for_messages(js, name, 2)
    server.signal(end)
    server.wait_for_exit()

    with Puller(start_jetstream(tmp_path / "store")) as js:
        assert set(js.sequences(origin)) >= {3, 4, 5}
        for expected in (["3", "4"], ["5"]):
            js.api(f"STREAM.PURGE.{name}")
            wait_until(js, name, lambda _, expected=expected: payloads(js, name) == expected)


@both_orders
@both_ends
def test_consumer_has_what_it_had_not_read_before_a_restart(
    start_jetstream: Callable[..., ServerProcess],
    server_kind: str,
    tmp_path: Path,
    origin: str,
    name: str,
    end: signal.Signals,
) -> None:
    if server_kind != "jetlake":
        pytest.skip("nats-server removes what was copied: see differences.md")
    server = start_jetstream(tmp_path / "store")
    with Puller(server) as js:
        js.create(origin, retention="interest")
        consumers.add(js, origin, "c")
        js.create(name, sources=[{"name": origin}])
        wait_for_sources(js, name)
        publish_numbers(js, f"{origin}.a", 5)
        wait_for_messages(js, name, 5)
    server.signal(end)
    server.wait_for_exit()

    with Puller(start_jetstream(tmp_path / "store")) as js:
        consumer = consumers.Consumer(js, origin, "c")
        assert sequences(consumer.take(5)) == [1, 2, 3, 4, 5]
        assert payloads(js, name) == list("12345")


@both_orders
@both_ends
def test_origin_lets_go_after_a_restart_of_what_was_copied_and_read(
    start_jetstream: Callable[..., ServerProcess],
    server_kind: str,
    tmp_path: Path,
    origin: str,
    name: str,
    end: signal.Signals,
) -> None:
    if server_kind != "jetlake":
        pytest.skip("nats-server removes what was copied: see differences.md")
    server = start_jetstream(tmp_path / "store")
    with Puller(server) as js:
        js.create(origin, retention="interest")
        consumers.add(js, origin, "c")
        js.create(name, max_msgs=2, discard="new", sources=[{"name": origin}])
        wait_for_sources(js, name)
        publish_numbers(js, f"{origin}.a", 4)
        wait_for_messages(js, name, 2)
    server.signal(end)
    server.wait_for_exit()

    with Puller(start_jetstream(tmp_path / "store")) as js:
        consumer = consumers.Consumer(js, origin, "c")
        consumer.acknowledge_each(consumer.take(4))
        wait_until(js, origin, lambda _: js.sequences(origin) == [3, 4])
        time.sleep(0.2)
        assert js.sequences(origin) == [3, 4]
        js.api(f"STREAM.PURGE.{name}")
        wait_for_messages(js, origin, 0)
        assert payloads(js, name) == ["3", "4"]
