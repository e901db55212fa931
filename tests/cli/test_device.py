"""`jetlake device`: the services as processes, and the commands that look at devices."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

pytest.importorskip("grpc", reason="needs the extra `devices`")
pytest.importorskip("aiohttp", reason="needs the extra `devices`")

from jetlake.cli.device import read_since
from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.devices.client import DeviceClient
from jetlake.devices.content import value_of
from tests.compatibility.server_process import start_server_process

START_S_MAX = 60.0
READY = "Device service is ready"
DEVICE = "ae424c58-e517-4494-6de7-583536c48213"


class Service:
    """A `jetlake device serve` or `bundle` that a test started."""

    def __init__(self, *words: str, environment: dict[str, str] | None = None, url: str = "") -> None:
        variables = {name: value for name, value in os.environ.items() if name not in ("JETSTREAM", "NATS_URL")}
        variables |= ({"NATS_URL": url} if url else {}) | (environment or {})
        self.started_s = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jetlake", "device", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=variables,
        )
        self.output = ""
        timer = threading.Timer(START_S_MAX, self.process.kill)
        timer.start()
        while READY not in self.output:
            line = self.process.stdout.readline()
            if not line:
                break
            self.output += line
        timer.cancel()
        self.ready_s = time.monotonic() - self.started_s

    def address(self, name: str) -> str:
        found = re.search(rf"^ *{name} +(\S+)$", self.output, re.MULTILINE)
        assert found is not None, self.output
        return found[1]

    @property
    def grpc(self) -> str:
        return self.address("gRPC")

    @property
    def is_ready(self) -> bool:
        return READY in self.output

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        rest, _ = self.process.communicate(timeout=START_S_MAX)
        self.output += rest
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def start():
    """Start services that end with the test."""
    services = []

    def started(*words, **options):
        services.append(Service(*words, **options))
        return services[-1]

    yield started
    for service in services:
        service.close()


PORTS = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")


@pytest.fixture(scope="module")
def service(url):
    """One service at the server of each kind."""
    made = Service("serve", "--jetstream", "--create-stream", *PORTS, url=url)
    assert made.is_ready, made.output
    yield made
    made.close()


@pytest.fixture
def device(service, done):
    """Run a command at the service."""
    return lambda *words: done("device", *words, "--service", service.grpc)


def test_content_is_notified_and_looked_at(device):
    assert device("send", "notify", "D1", "/light/1", '{"power": 7}').startswith("Stored")
    assert device("send", "notify", "D1", "/light/1", '{"power": 7}') == "Nothing changed\n"

    state = device("state", "D1")
    history = json.loads(device("history", "D1", "/light/1", "--json"))

    assert "/light/1\t" in state
    assert '{"power": 7}' in state
    assert history[0]["ResourceChanged"]["content"] == {"power": 7}
    assert "D1\t" in device("state")
    assert json.loads(device("state", "--json"))[0]["id"] == "D1"
    assert json.loads(device("state", "D1", "/none", "--json")) == []


def test_links_are_listed(device, service):
    async def publish():
        from jetlake.devices.protos.events_2025_pb2 import Resource

        async with DeviceClient(service.grpc) as client:
            await client.publish_links("D2", [Resource(href="/a", resource_types=["x.light"], title="lamp")])

    asyncio.run(publish())

    assert device("links", "D2").splitlines()[1] == "D2\t/a\tx.light\t\tlamp"
    assert json.loads(device("links", "--json"))


def test_events_since_a_time(device):
    device("send", "notify", "D3", "/a", "1")
    at = json.loads(device("events", "--device", "D3", "--json"))[0]["ResourceChanged"]["eventMetadata"]["timestamp"]
    device("send", "notify", "D3", "/a", "2")

    assert len(json.loads(device("events", "--since", at, "--device", "D3", "--json"))) == 1
    assert len(json.loads(device("events", "--since", "1h", "--resource", "D3/a", "--json"))) == 2
    assert len(device("events", "--since", "1h").splitlines()) >= 3


def test_command_is_confirmed_by_a_device(device, service):
    device("send", "notify", "D4", "/light", '{"power": 1}')
    ready = threading.Event()

    async def answer():
        async with DeviceClient(service.grpc) as client:
            async for each in client.watch(device_ids=["D4"]):
                ready.set()
                if each.WhichOneof("type") == "event":
                    pending = each.event.resource_update_pending
                    name = pending.audit_context.correlation_id
                    await client.confirm("ConfirmResourceUpdate", "D4", "/light", name, value_of(pending.content))
                    return

    thread = threading.Thread(target=lambda: asyncio.run(answer()))
    thread.start()
    assert ready.wait(START_S_MAX)
    answered = device("send", "update", "D4", "/light", '{"power": 9}', "--wait", "30s")
    thread.join()

    assert "ResourceUpdated" in answered
    assert '{"power": 9}' in answered


def test_watch_prints_what_comes(service, url):
    words = ["device", "watch", "D5", "--count", "1", "--json", "--service", service.grpc]
    watching = subprocess.Popen(
        [sys.executable, "-m", "jetlake", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert watching.stderr.readline() == "watching\n"

    async def notify():
        async with DeviceClient(service.grpc) as client:
            await client.notify("other", "/a", 1)
            await client.notify("D5", "/a", 2)

    asyncio.run(notify())
    output, _ = watching.communicate(timeout=START_S_MAX)

    assert watching.returncode == 0
    assert json.loads(output)["ResourceChanged"]["content"] == 2


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("send", "explode", "D1", "/a"), 2, "is not an action"),
        (("send", "update", "D1", "/a"), 2, "needs content"),
        (("send", "update", "D1", "/a", "{"), 2, "not JSON"),
        (("send", "update", "unknown", "/a", "1"), 1, "is not known"),
        (("send", "notify", "a.b", "/a", "1"), 1, "cannot be part of a subject"),
        (("events", "--since", "yesterdayish"), 2, "is not a time"),
        (("events", "--resource", "D1"), 2, "is not a resource"),
    ],
)
def test_wrong_input_is_a_clear_error(cli, service, words, code, reason):
    answer = cli("device", *words, "--service", service.grpc)

    assert answer.exit_code == code
    assert reason in " ".join(answer.output.replace("│", " ").split())


def test_missing_service_is_a_clear_error(cli):
    answer = cli("device", "state", "--service", "127.0.0.1:1")

    assert answer.exit_code == 1
    assert "jetlake device state: " in answer.output


def test_points_in_time_are_read():
    assert read_since("") == 0
    assert read_since("1625130000000000000") == 1625130000000000000
    before_ns, ago_ns, after_ns = time.time_ns(), read_since("10m"), time.time_ns()
    assert before_ns <= ago_ns + 600_000_000_000 <= after_ns
    assert read_since("2021-07-01T09:00:00+00:00") == 1625130000000000000
    with pytest.raises(ValueError, match="is not a time"):
        read_since("soon")


# `serve` and its configuration.


def test_documented_fragments_are_accepted_as_written(start, cli, server_kind, tmp_path):
    """The stream of the documentation is made, and refused by the service because it listens to no event."""
    own = tmp_path / "stream.yaml"
    own.write_text(
        "---\napiVersion: jetstream.nats.io/v1beta1\nkind: Stream\nmetadata:\n  name: events\nspec:\n"
        '  name: events\n  subjects: ["events.*"]\n'
    )
    config = tmp_path / "config.yaml"
    config.write_text("...\nclients:\n  eventBus:\n    nats:\n      jetstream: true\n...\n")
    server = start_server_process(server_kind, tmp_path, ["-js", "-sd", str(tmp_path / "store")])
    try:
        applied = cli("apply", str(own), "-s", server.url)
        subjects = asyncio.run(subjects_of(server.url))
        refused = start("serve", "--config", str(config), *PORTS, url=server.url)
    finally:
        server.stop()

    assert applied.exit_code == 0, applied.output
    assert subjects == {"events": ["events.*"]}
    assert refused.wait() == 1
    assert "stream events listens on events.*, which does not match" in refused.output


async def subjects_of(url):
    async with open_api(Access(url=url)) as api:
        return {each["config"]["name"]: each["config"]["subjects"] for each in await api.streams()}


def test_service_without_jetstream_keeps_nothing(start, url):
    service = start("serve", *PORTS, url=url)

    assert "in memory only (core mode)" in service.output
    assert service.stop() == 0


def test_service_without_a_server_is_a_clear_error(start):
    service = start("serve", "--jetstream", *PORTS, url="nats://127.0.0.1:1")

    assert service.wait() == 1
    assert "jetlake device serve: cannot connect to nats://127.0.0.1:1" in service.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--config", "none.yaml"), "cannot read none.yaml"),
        (("--service-cert", "x.pem"), "belong together"),
        (("--grpc", "256.1.1.1:0"), "cannot listen on 256.1.1.1:0"),
        (("--http", "127.0.0.1:bogus"), "cannot listen on 127.0.0.1:bogus"),
    ],
)
def test_wrong_options_are_a_clear_error(start, url, words, reason):
    service = start("serve", "--no-jetstream", *PORTS, *words, url=url)

    assert service.wait() == 1
    assert reason in service.output


# The bundle; it brings its own server, so once is enough.

BUNDLE = ("-p", "0", *PORTS)


def get(url: str) -> list[dict]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return [json.loads(line)["result"] for line in answer.read().splitlines()]


def notify(address: str, value: object) -> None:
    async def work():
        async with DeviceClient(address) as client:
            await client.notify(DEVICE, "/light/1", value)

    asyncio.run(work())


@pytest.mark.jetlake
def test_bundle_keeps_events_over_a_restart(start, tmp_path):
    environment = {"JETSTREAM": "true"}
    first = start("bundle", "--data", str(tmp_path), *BUNDLE, environment=environment)
    notify(first.grpc, {"power": 1})
    assert len(get(f"{first.address('HTTP')}events")) == 1
    assert first.stop() == 0

    second = start("bundle", "--data", str(tmp_path), *BUNDLE, environment=environment)
    notify(second.grpc, {"power": 2})
    found = get(f"{second.address('HTTP')}events?timestampFilter=1")

    assert [each["resourceChanged"]["content"] for each in found] == [{"power": 1}, {"power": 2}]
    assert "stream EVENTS" in second.output
    assert (tmp_path / "jetstream").is_dir()
    assert asyncio.run(subjects_of(second.address("NATS")))["EVENTS"] == ["events.>"]
    assert second.stop() == 0
    assert second.output.rstrip().endswith("Stopped")


@pytest.mark.jetlake
@pytest.mark.parametrize("value", [None, "false", "1"])
def test_bundle_without_the_variable_makes_no_stream(start, tmp_path, value):
    environment = {} if value is None else {"JETSTREAM": value}
    bundle = start("bundle", "--data", str(tmp_path), *BUNDLE, environment=environment)
    notify(bundle.grpc, {"power": 1})

    assert "in memory only (core mode)" in bundle.output
    assert len(get(f"{bundle.address('HTTP')}events")) == 1
    assert not (tmp_path / "jetstream").exists()
    assert bundle.stop() == 0


@pytest.mark.jetlake
def test_bundle_in_a_file_is_a_clear_error(start, tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")

    bundle = start("bundle", "--data", str(taken), *BUNDLE)

    assert bundle.wait() == 1
    assert f"cannot use {taken}" in bundle.output
