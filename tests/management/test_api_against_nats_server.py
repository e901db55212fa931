"""The API as a whole, asked of nats-server and of ours: the same bytes, but for times and ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.compatibility.wire import RawClient
from tests.management.api_cases import SILENT, ApiStep, all_steps

pytestmark = [pytest.mark.compatibility, pytest.mark.nats_server, pytest.mark.jetlake]

CONFIGURATION = """
server_name: probe
jetstream { store_dir: store, max_mem: 1000000000, max_file: 10000000000 }
"""
ACCOUNTS = """
accounts {
  A: { users: [{ user: A, password: x }], jetstream: { max_mem: 1000, max_file: 2000, max_streams: 3 } }
  B: { users: [{ user: B, password: x }] }
  $SYS: { users: [{ user: S, password: x }] }
}
"""
SILENCE_SECONDS = 0.3

TIMES = re.compile(rb'"\d{4}-\d\d-\d\dT[^"]*Z"')
ZERO_TIME = b'"0001-01-01T00:00:00Z"'

# Ours says what to do about an external origin that leads nowhere; nats-server says nothing.
NO_REMOTE = re.compile(rb',"error":{"code":500,"err_code":\d+,"description":"no remote answers to [^"]*"}')

Start = Callable[[str, str], ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a server of either kind with a configuration file."""
    servers: list[ServerProcess] = []

    def start_with(kind: str, configuration: str) -> ServerProcess:
        folder = tmp_path / kind
        folder.mkdir()
        servers.append(start_server_process(kind, folder, config=configuration))
        return servers[-1]

    yield start_with
    for server in servers:
        server.stop()


def connected(client: RawClient, user: str = "") -> RawClient:
    client.connect(headers=True, no_responders=True, **({"user": user, "pass": "x"} if user else {}))
    client.send(b"SUB answers 1\r\n")
    return client


def send(client: RawClient, step: ApiStep) -> None:
    subject = step.subject.removeprefix("@") if step.subject[0] in "@$" else f"$JS.API.{step.subject}"
    sizes = b"%d %d" % (len(step.header), len(step.header) + len(step.body)) if step.header else b"%d" % len(step.body)
    verb = b"HPUB" if step.header else b"PUB"
    client.send(b"%s %s answers %s\r\n%s%s\r\n" % (verb, subject.encode(), sizes, step.header, step.body))


def answer_of(client: RawClient, step: ApiStep) -> bytes:
    send(client, step)
    payload = client.read_frame().partition(b"\r\n")[2].removesuffix(b"\r\n")
    return payload[:-4] if payload.endswith(b"\r\n\r\n") else payload


def without_times(answer: bytes | None) -> bytes:
    answer = NO_REMOTE.sub(b"", answer or b"nothing")
    return TIMES.sub(lambda found: found[0] if found[0] == ZERO_TIME else b'"time"', answer).strip()


def differences(start: Start, configuration: str, steps: list[ApiStep], user: str = "") -> list[str]:
    """Ask both servers the same and return what was answered differently."""
    different = []
    with start("nats-server", configuration).client() as theirs, start("jetlake", configuration).client() as ours:
        connected(theirs, user)
        connected(ours, user)
        for step in steps:
            expected, answer = (without_times(answer_of(client, step)) for client in (theirs, ours))
            if answer != expected:
                different.append(f"{step}\n    nats-server: {expected!r}\n    ours:        {answer!r}")
    return different


def test_requests_are_answered_with_the_same_bytes(start: Start) -> None:
    different = differences(start, CONFIGURATION, all_steps())

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


def test_requests_without_an_endpoint_are_met_with_silence_by_both(start: Start) -> None:
    for kind in ("nats-server", "jetlake"):
        with start(kind, CONFIGURATION).client() as client:
            connected(client)
            for subject in SILENT:
                send(client, ApiStep(subject))
            client.expect_silence(SILENCE_SECONDS)


@pytest.mark.parametrize("user", ["A", "B", "S"])
def test_accounts_are_answered_with_the_same_bytes(start: Start, user: str) -> None:
    subjects = ["INFO", "STREAM.NAMES", "STREAM.LIST", "STREAM.INFO.S", "STREAM.PURGE.S", "CONSUMER.LIST.S"]
    subjects += ["STREAM.LEADER.STEPDOWN.S", "CONSUMER.PAUSE.S.C", "CONSUMER.MSG.NEXT.S.C", "DIRECT.GET.S.x"]
    subjects += ["STREAM.CREATE.S", "CONSUMER.CREATE.S", "STREAM.MSG.GET.S", "STREAM.SNAPSHOT.S", "STREAM.RESTORE.S"]
    subjects += ["ACCOUNT.PURGE.A", "ACCOUNT.PURGE.NOPE", "FOO"] if user == "S" else []

    different = differences(start, CONFIGURATION + ACCOUNTS, [ApiStep(subject) for subject in subjects], user)

    assert not different, "\n".join(different)


@pytest.mark.parametrize("user", ["A", "B", "S"])
def test_domain_is_answered_with_the_same_bytes(start: Start, user: str) -> None:
    configuration = CONFIGURATION.replace("store_dir", "domain: hub, store_dir") + ACCOUNTS
    body = b'{"name":"S","max_bytes":100}'
    steps = [
        ApiStep("$JS.hub.API.INFO"),
        ApiStep("$JS.other.API.INFO"),
        ApiStep("$JS.hub.API.STREAM.CREATE.S", body),
        ApiStep("STREAM.UPDATE.S", body),
        ApiStep("$JS.hub.API.STREAM.INFO.S"),
        ApiStep("$JS.hub.API.STREAM.LIST"),
        ApiStep("$JS.hub.API.FOO"),
        ApiStep("$JS.hub.API.STREAM"),
        ApiStep("$JS.hub.API.CONSUMER.MSG.NEXT.S.C"),
        ApiStep("$JS.hub.API.DIRECT.GET.S"),
        ApiStep("INFO"),
    ]

    different = differences(start, configuration, steps, user)

    assert not different, "\n".join(different)
