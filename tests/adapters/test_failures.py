"""Adapters whose surroundings fail: servers killed and stopped, neighbours broken, queues full. On both servers."""

import os
import signal

import pytest

from jetlake.adapters.configuration import read_hash
from jetlake.adapters.host import AdapterHost
from jetlake.client.access import Access
from jetlake.errors import ConfigurationError
from tests.adapters.conftest import adapter_content, wait_until
from tests.adapters.fleet import Stored
from tests.compatibility.server_process import start_server_process


@pytest.fixture
def stream_server(server_kind, tmp_path):
    """A second server, for streams only, which a test may kill and start again."""

    class StreamServer:
        def __init__(self):
            self.folder = tmp_path / "streams"
            self.folder.mkdir()
            self.process = None
            self.port = -1
            self.start()

        def start(self):
            # What nats-server has acknowledged survives a kill only so.
            config = f'jetstream {{ store_dir: "{self.folder / "store"}", sync_interval: always }}'
            self.process = start_server_process(server_kind, self.folder, config=config, port=self.port)
            self.port = self.process.port

        @property
        def address(self):
            return f"127.0.0.1:{self.port}"

        @property
        def url(self):
            return f"nats://{self.address}"

        def kill(self):
            self.process.process.kill()
            self.process.process.wait()

        def signal(self, number):
            os.kill(self.process.pid, number)

    server = StreamServer()
    yield server
    server.signal(signal.SIGCONT)
    server.process.stop()


def count_at(server, name):
    opened = Stored(server.url)
    try:
        return opened.count(name)
    finally:
        opened.close()


def create_at(server, name, **config):
    opened = Stored(server.url)
    opened.create(name, f"{name}.out", **config)
    opened.close()


def test_a_stream_server_that_is_killed_and_comes_back_has_everything_once(adapters, fleet, name, stream_server):
    create_at(stream_server, name)
    adapter = adapters.start_one(
        name, queue_len=20_000, stream={"servers": [stream_server.address], "ack_wait": "1s", "workers": 2}
    )

    fleet.register(f"{name}.in", 2_000)
    wait_until(lambda: adapter.total("messages", "output") > 0)
    stream_server.kill()
    fleet.register(f"{name}.in", 2_000, first=2_000)
    stream_server.start()
    wait_until(lambda: adapter.total("messages", "output") == 4_000, str(adapter.counters))

    assert count_at(stream_server, name) == 4_000
    assert adapter.total("dropped") == adapter.total("failed") == 0


def test_while_a_stream_is_slow_the_queue_stays_bounded_and_what_is_dropped_is_counted(
    adapters, fleet, name, stream_server
):
    create_at(stream_server, name)
    adapter = adapters.start_one(
        name,
        queue_len=100,
        queue_wait="0.1s",
        stream={"servers": [stream_server.address], "workers": 1, "ack_wait": "60s"},
    )

    stream_server.signal(signal.SIGSTOP)
    for first in range(0, 5_000, 1_000):
        fleet.register(f"{name}.in", 1_000, first=first)
    wait_until(lambda: adapter.total("messages", "input") == 5_000)
    wait_until(lambda: adapter.total("dropped") > 0)
    assert len(adapter.queue) <= 100
    assert adapter.in_flight <= 256
    stream_server.signal(signal.SIGCONT)
    wait_until(lambda: adapter.total("messages", "output") + adapter.total("dropped") == 5_000)

    assert count_at(stream_server, name) == adapter.total("messages", "output")
    assert any("stayed full" in line for line in adapters.lines)


def test_a_queue_that_is_full_holds_the_sender_back_before_anything_is_dropped(adapters, fleet, name, stream_server):
    create_at(stream_server, name)
    adapter = adapters.start_one(
        name, queue_len=50, queue_wait="9s", stream={"servers": [stream_server.address], "workers": 1}
    )

    stream_server.signal(signal.SIGSTOP)
    fleet.register(f"{name}.in", 2_000)
    wait_until(lambda: len(adapter.queue) == 50)
    stream_server.signal(signal.SIGCONT)
    wait_until(lambda: adapter.total("messages", "output") == 2_000)

    assert adapter.total("dropped") == 0
    assert count_at(stream_server, name) == 2_000


def test_one_adapter_whose_server_is_gone_does_not_touch_another(adapters, stored, fleet, name, stream_server):
    stored.create(name, f"{name}.out")
    broken = adapter_content(f"{name}x", stream={"servers": [stream_server.address]})
    broken["ingest"]["topic"] = f"{name}.in"
    stream_server.kill()
    host = adapters.start({f"{name}x": broken, name: adapter_content(name)})
    good = next(adapter for adapter in host.adapters if adapter.name == name)
    wait_until(lambda: good.total("connections", "input") == 2)

    fleet.register(f"{name}.in", 500)
    wait_until(lambda: stored.count(name) == 500)

    assert good.total("errors") == 0
    assert any("cannot connect" in line for line in adapters.lines)
    stream_server.start()


def test_an_adapter_that_cannot_run_is_reported_and_the_others_run(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    broken = adapter_content(f"{name}x", ingest={"verify": {"ca": "missing.pem"}})

    host = adapters.start({f"{name}x": broken, f"{name}y": {"type": "?"}, name: adapter_content(name)})

    assert [adapter.name for adapter in host.adapters] == [name]
    assert any("cannot read missing.pem" in line for line in adapters.lines)
    assert any(f"adapter {name}y: type is '?'" in line for line in adapters.lines)
    wait_until(lambda: host.adapters[0].total("connections", "input") == 2)
    fleet.register(f"{name}.in", 5)
    wait_until(lambda: stored.count(name) == 5)


def test_a_host_without_a_single_adapter_is_refused():
    configuration = read_hash({"adapters": {"a": {"type": "?"}}})

    with pytest.raises(ConfigurationError, match="no adapter can run"):
        AdapterHost(configuration, Access(), lambda *_: None)


def test_a_stop_while_the_stream_is_gone_says_how_much_is_lost(adapters, fleet, name, stream_server):
    create_at(stream_server, name)
    adapter = adapters.start_one(
        name, stream={"servers": [stream_server.address], "workers": 1, "ack_wait": "60s"}, drain="0.5s"
    )
    stream_server.signal(signal.SIGSTOP)
    fleet.register(f"{name}.in", 300)
    wait_until(lambda: adapter.total("messages", "input") == 300)

    lost = adapter.stop()

    assert lost == 300
    assert any("300 messages were not delivered within 0.5 s" in line for line in adapters.lines)
    adapters.hosts.clear()


def test_bad_input_of_every_kind_does_not_stop_the_good(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    stored.create(f"{name}_dead", f"{name}.dead")
    adapter = adapters.start_one(name, dead_letters=f"{name}.dead")
    bad = [os.urandom(number % 700) for number in range(2_000)]

    fleet.publish(f"{name}.in", *bad[:1_000])
    fleet.register(f"{name}.in", 1_000)
    fleet.publish(f"{name}.in", *bad[1_000:])
    fleet.register(f"{name}.in", 1_000, first=1_000)
    wait_until(lambda: stored.count(name) == 2_000 and stored.count(f"{name}_dead") == 2_000)

    assert adapter.total("dead_letters") == 2_000
    assert adapter.total("dropped") == adapter.total("failed") == 0
