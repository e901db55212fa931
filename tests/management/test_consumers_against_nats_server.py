"""Requests about consumers, answered by nats-server and by ours: the same bytes, but for times and chance.

Each test plays some hundreds of short histories (`consumer_cases`, `consumer_histories`) on a nats-server of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.context import ServerLimits, StreamAccountLimits
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.management import consumer_cases, consumer_histories
from tests.management.api_cases import ApiStep
from tests.management.consumer_cases import PULL, PUSH, Case, create
from tests.management.consumer_histories import info
from tests.management.consumer_twins import NatsServerSide, OurSide, differences, masked

pytestmark = [pytest.mark.compatibility, pytest.mark.nats_server]

CONFIGURATION = """
server_name: probe
jetstream { store_dir: store, max_mem: 1000000000, max_file: 10000000000, strict: true }
"""
SETTINGS = ManagementSettings(
    server_name="probe",
    system_account="$SYS",
    accounts={"$G": StreamAccountLimits()},
    server=ServerLimits(max_memory=1_000_000_000, max_storage=10_000_000_000),
)

SMALL_CONFIGURATION = """
server_name: probe
jetstream {
  store_dir: store, max_mem: 1000000000, max_file: 10000000000
  limits { max_ack_pending: 40, max_request_batch: 25 }
}
accounts {
  A: { jetstream: { max_consumers: 2, max_ack_pending: 30 }, users: [{ user: A, password: x }] }
  B: { jetstream: enabled, users: [{ user: B, password: x }] }
}
"""
SMALL_SETTINGS = ManagementSettings(
    server_name="probe",
    accounts={"A": StreamAccountLimits(max_consumers=2, max_ack_pending=30), "B": StreamAccountLimits()},
    server=ServerLimits(max_memory=1_000_000_000, max_storage=10_000_000_000, max_ack_pending=40, max_request_batch=25),
)
SEED = 20_261_116
HISTORIES = 150
SILENCE_S = 0.3
PREFIX = "$JS.EVENT.ADVISORY."

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
        consumer_cases.fields_and_values,
        consumer_cases.pairs_of_features,
        consumer_cases.pairs_of_features_otherwise,
        consumer_cases.updates,
        consumer_cases.single_updates,
        consumer_cases.bodies,
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
def test_requests_are_answered_alike(start: Start, cases: Callable[[], Iterator[consumer_cases.Case]]) -> None:
    with start(CONFIGURATION).client() as client:
        different = differences(NatsServerSide(client), OurSide(SETTINGS), cases())

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


def test_histories_made_by_chance_are_answered_alike(start: Start) -> None:
    with start(CONFIGURATION).client() as client:
        cases = consumer_histories.RandomHistories(SEED).cases(HISTORIES)
        different = differences(NatsServerSide(client), OurSide(SETTINGS), cases)

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


@pytest.mark.parametrize("account", ["A", "B"])
def test_limits_of_accounts_and_servers_are_answered_alike(start: Start, account: str) -> None:
    with start(SMALL_CONFIGURATION).client() as client:
        theirs, ours = NatsServerSide(client, account), OurSide(SMALL_SETTINGS, account)
        different = differences(theirs, ours, consumer_histories.account_limits())

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


def test_servers_that_are_not_strict_answer_alike(start: Start) -> None:
    settings = msgspec.structs.replace(SETTINGS, is_strict=False)

    with start(CONFIGURATION.replace("strict: true", "strict: false")).client() as client:
        different = differences(NatsServerSide(client), OurSide(settings), consumer_cases.bodies())

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


def test_domains_are_answered_alike(start: Start) -> None:
    settings = msgspec.structs.replace(SETTINGS, domain="hub")

    with start(CONFIGURATION.replace("store_dir", "domain: hub, store_dir")).client() as client:
        different = differences(NatsServerSide(client), OurSide(settings), consumer_histories.unpins())

    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:10])


def test_consumer_that_somebody_listens_to_is_told_of_and_keeps_its_subject(start: Start) -> None:
    push = {"deliver_subject": "x.deliver", "durable_name": "C"}
    steps = [create(push), info(), create({**push, "deliver_subject": "x.other"}), create({**push, "description": "x"})]
    case = Case(("S",), [*steps, ApiStep("CONSUMER.LIST.S")])
    ours = OurSide(SETTINGS)
    ours.api.engine.interest.add("x.deliver")

    with start(CONFIGURATION).client() as client:
        theirs = NatsServerSide(client)
        client.send(b"SUB x.deliver 2\r\n")
        different = differences(theirs, ours, [case])

    assert not different, "\n".join(different)


def test_reset_of_a_consumer_that_is_not_there_is_met_with_silence(start: Start) -> None:
    ours = OurSide(SETTINGS)
    ours.begin(["S"])

    with start(CONFIGURATION).client() as client:
        theirs = NatsServerSide(client)
        theirs.begin(["S"])
        for stream in ("S", "NOPE"):
            client.send(b"PUB $JS.API.CONSUMER.RESET.%s.C answers 0\r\n\r\n" % stream.encode())
            client.expect_silence(SILENCE_S)
            assert ours.request(ApiStep(f"CONSUMER.RESET.{stream}.C")) == b"nothing"


ADVISED: list[ApiStep] = [
    create(PULL),
    create(PULL),
    create({**PULL, "description": "x"}),
    create({**PULL, "pause_until": "2030-01-01T00:00:00+02:00"}, name="D"),
    create({**PULL, "description": "x"}, name="D"),
    create({**PULL, "pause_until": "2020-01-01T00:00:00Z"}, name="E"),
    *(
        ApiStep("CONSUMER.PAUSE.S.C", body)
        for body in (b"", b'{"pause_until":"2030-01-01T00:00:00Z"}', b'{"pause_until":"2030-01-01T00:00:00Z"}', b"")
    ),
    ApiStep("CONSUMER.PAUSE.S.C", b'{"pause_until":"2020-01-01T00:00:00+05:30"}'),
    create({**PUSH, "direct": True}, name="HIDDEN"),
    ApiStep("CONSUMER.RESET.S.C"),
    ApiStep("CONSUMER.DELETE.S.HIDDEN"),
    ApiStep("CONSUMER.DELETE.S.D"),
    ApiStep("CONSUMER.DELETE.S.E"),
    ApiStep("STREAM.DELETE.S"),
]


def test_the_same_is_told_without_being_asked(start: Start) -> None:
    words = ("CREATED", "DELETED", "PAUSE")
    ours = OurSide(SETTINGS)
    ours.api.engine.interest |= {f"{PREFIX}CONSUMER.{word}.S.{name}" for word in words for name in (*"CDE", "HIDDEN")}
    ours.api.engine.interest.add(f"{PREFIX}STREAM.DELETED.S")
    server = start(CONFIGURATION)
    with server.client() as client, server.client() as listener:
        theirs = NatsServerSide(client)
        for side in (theirs, ours):
            side.begin(["S"])
        listener.connect()
        listener.send(b"SUB %sCONSUMER.> 1\r\nSUB %sSTREAM.DELETED.> 2\r\n" % ((PREFIX.encode(),) * 2))
        listener.expect_pong()

        for step in ADVISED:
            theirs.request(step)
            ours.request(step)

        expected = [told_in(listener.read_frame())]
        while not expected[-1][0].startswith("STREAM"):
            expected.append(told_in(listener.read_frame()))
    published = [(subject.removeprefix(PREFIX), masked(body)) for _, subject, body, _ in ours.api.engine.published]
    assert [each for each in published if each[0].startswith(("CONSUMER", "STREAM"))] == expected


def told_in(frame: bytes) -> tuple[str, bytes]:
    head, _, body = frame.partition(b"\r\n")
    return head.split()[1].decode().removeprefix(PREFIX), masked(body)
