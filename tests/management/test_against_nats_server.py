"""Requests about streams, answered by nats-server and by our functions: the same errors, the same configurations.

Each test plays some hundreds of short histories (`stream_cases`) on a nats-server of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jetlake.management.streams.context import ServerLimits, StreamAccountLimits
from jetlake.management.subjects.transform import TransformError, make_transform
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.management import stream_cases
from tests.management.twins import NatsServerTwin, OurTwin, differences

pytestmark = [pytest.mark.compatibility, pytest.mark.nats_server]

# Room for everything but the largest numbers, and the same on every machine.
SERVER = ServerLimits(max_memory=1_000_000_000, max_storage=10_000_000_000)
CONFIGURATION = "jetstream {{ store_dir: store, max_mem: 1000000000, max_file: 10000000000, strict: {strict} }}"

SMALL_SERVER = ServerLimits(max_memory=100_000, max_storage=200_000, duplicate_window_max_ns=60_000_000_000)
ACCOUNTS = {
    "A": StreamAccountLimits(max_streams=2, max_memory=1_000, max_storage=2_000, max_consumers=3),
    "B": StreamAccountLimits(
        max_streams=10,
        max_memory=1_000,
        max_storage=2_000,
        max_bytes_required=True,
        memory_max_stream_bytes=100,
        storage_max_stream_bytes=200,
    ),
    "C": StreamAccountLimits(),
}
SMALL_CONFIGURATION = """
jetstream { store_dir: store, max_mem: 100000, max_file: 200000, limits { duplicate_window: "1m" } }
accounts {
  A: {
    jetstream: { max_streams: 2, max_mem: 1000, max_file: 2000, max_consumers: 3 }
    users: [{ user: A, password: x }]
  }
  B: {
    jetstream: {
      max_streams: 10, max_mem: 1000, max_file: 2000,
      max_bytes_required: true, memory_max_stream_bytes: 100, disk_max_stream_bytes: 200
    }
    users: [{ user: B, password: x }]
  }
  C: { jetstream: enabled, users: [{ user: C, password: x }] }
}
"""

# Source, destination and a subject, for which the destination has no random part.
MAPPINGS = [
    ("a.*.*", "x.{{wildcard(2)}}.{{wildcard(1)}}", "a.foo.bar"),
    ("a.*", "x.{{wildcard(0)}}.$0.{{wildcard(-1)}}", "a.foo"),
    ("a.*", "x.{{partition(10,1)}}", "a.foo"),
    ("a.*.*", "x.{{partition(10,2,1)}}", "a.foo.bar"),
    ("a.*", "x.{{partition(10)}}", "a.foo"),
    ("a", "x.{{partition(10)}}", "a"),
    ("a", "x.{{partition(10,1)}}", "a"),
    ("a.>", "x.{{partition(10)}}.>", "a.b.c"),
    *(("a.*", f"x.{{{{partition({count},{index})}}}}", "a.foo") for count in (0, -1, 7) for index in (0, 1)),
    *(("a.*", "x.{{split(1,-)}}.y", f"a.{token}") for token in ("-f-o--o-", "-", "b", "f-o")),
    ("a.*", "{{split(1,-)}}", "a.-"),
    ("a.*", "x.{{split(1,)}}", "a.foo"),
    ("a.*", "x.{{split(1, -)}}", "a.f-o"),
    *(
        ("a.*", f"x.{{{{{function}(1,{length})}}}}", f"a.{token}")
        for function in ("splitFromLeft", "splitFromRight", "sliceFromLeft", "SliceFromRight", "left", "Right")
        for length in (-1, 0, 1, 2, 5, 9)
        for token in ("abcde", "abcd", "a")
    ),
    ("a.*", "x.{{random(1)}}.{{random(0)}}.{{random(-1)}}", "a.b"),
    ("a.>", "x.>", "a.b.c.d"),
    ("a.*.>", "x.>", "a.b.c.d"),
    ("a.*.>", "x.$1.>", "a.b.c.d"),
    (">", "x.>", "a.b"),
    ("", "x.>", "a.b"),
    ("a.*.*", "lit.y{{wildcard(1)}}", "a.b.c"),
    ("a.*", "x.{{wildcard(1)", "a.b"),
    ("b.*", "x.$1", "a.b"),
    ("a.b", "q", "a.b"),
    ("a.*", "x.{{wildcard(1)}}.{{split(1,-)}}.z", "a.b-c"),
]

Start = Callable[[str], ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a nats-server with a configuration file."""
    servers: list[ServerProcess] = []

    def start_with(configuration: str) -> ServerProcess:
        servers.append(start_server_process("nats-server", tmp_path, config=configuration))
        return servers[-1]

    yield start_with
    for server in servers:
        server.stop()


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(lambda: stream_cases.hand_written("stream_cases.txt"), id="hand_written"),
        pytest.param(stream_cases.bodies_and_names, id="bodies_and_names"),
        pytest.param(stream_cases.fields_and_values, id="fields_and_values"),
        pytest.param(stream_cases.pairs_of_features, id="pairs_of_features"),
        pytest.param(stream_cases.updates, id="updates"),
        pytest.param(lambda: stream_cases.RandomCases(seed=6).cases(2_000), id="random"),
    ],
)
def test_requests_are_answered_alike(start: Start, cases: Callable[[], Iterator[stream_cases.Case]]) -> None:
    server = start(CONFIGURATION.format(strict="true"))

    with server.client() as client:
        different = differences({"": NatsServerTwin(client)}, OurTwin(SERVER), list(cases()))

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


def test_requests_to_a_server_that_is_not_strict_are_answered_alike(start: Start) -> None:
    server = start(CONFIGURATION.format(strict="false"))
    cases = stream_cases.hand_written("stream_cases.txt") + list(stream_cases.bodies_and_names())

    with server.client() as client:
        different = differences({"": NatsServerTwin(client)}, OurTwin(SERVER, is_strict=False), cases)

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


def test_requests_of_accounts_with_limits_are_answered_alike(start: Start) -> None:
    server = start(SMALL_CONFIGURATION)
    cases = stream_cases.hand_written("limit_cases.txt", has_accounts=True)

    with server.client() as first, server.client() as second, server.client() as third:
        clients = zip(ACCOUNTS, (first, second, third), strict=True)
        twins = {account: NatsServerTwin(client, account) for account, client in clients}
        different = differences(twins, OurTwin(SMALL_SERVER, ACCOUNTS), cases)

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


def test_subjects_are_mapped_alike(start: Start) -> None:
    server = start(CONFIGURATION.format(strict="true"))
    different = []

    with server.client() as client:
        twin = NatsServerTwin(client)
        for source, destination, subject in MAPPINGS:
            mapped = _subject_stored_by(twin, source, destination, subject)
            try:
                expected = make_transform(source, destination).apply(subject)
            except TransformError as error:
                expected = str(error)
            if mapped != (subject if expected is None else expected):
                different.append(f"{source} to {destination}: {subject} becomes {mapped}, ours {expected}")

    assert not different, "\n".join(different)


def _subject_stored_by(twin: NatsServerTwin, source: str, destination: str, subject: str) -> str:
    transform = f'{{"src":"{source}","dest":"{destination}"}}'
    body = f'{{"name":"S","subjects":["a","a.>"],"storage":"memory","subject_transform":{transform}}}'
    created = twin.request("STREAM.CREATE.S", body.encode())
    assert "error" not in created, created
    twin.client.send(b"PUB %s answers 1\r\nx\r\n" % subject.encode())
    assert b'"seq":1' in twin.client.read_frame()
    stored = twin.request("STREAM.MSG.GET.S", b'{"seq":1}')["message"]["subject"]
    twin.request("STREAM.DELETE.S")
    return str(stored)
