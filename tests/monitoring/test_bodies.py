"""Bodies by name, as the system account asks for them."""

import json

import pytest

from jetlake.monitoring import bodies, statsz
from jetlake.monitoring.parameters import PageError as RefusedError
from jetlake.monitoring.parameters import UnreadableOptionsError
from tests.monitoring.recorded import (
    FACTS,
    JETSTREAM,
    NOW_NS,
    RecordedEngine,
    account,
    as_json,
    connection,
    recorded,
    source_of,
    traffic,
)


@pytest.mark.parametrize("name", sorted(bodies.BODIES))
@pytest.mark.parametrize("request_body", [b"", b"{}", b'{"server_name":"here","cluster":"","tags":null}'])
def test_every_body_answers_a_request_without_options(name, request_body):
    body = json.loads(bodies.answer(name, recorded(), request_body))

    assert isinstance(body, dict)


def test_options_are_read_from_the_request():
    source = recorded(connections=[connection(1, subscriptions=1), connection(2, subscriptions=5), connection(3)])

    body = json.loads(bodies.answer("CONNZ", source, b'{"sort":"subs","limit":2}'))

    assert [entry["cid"] for entry in body["connections"]] == [2, 1]


def test_a_refusal_is_told_from_an_unreadable_request():
    with pytest.raises(RefusedError, match=r"^invalid sorting option: bogus$") as refusal:
        bodies.answer("CONNZ", recorded(), b'{"sort":"bogus"}')
    assert not isinstance(refusal.value, UnreadableOptionsError)

    for request in (
        b"xx",
        b'{"sort":5}',
        b"[]",
        b'{"limit":1e400}',
        b'{"sort":"\xff"}',
        b'{"offset":9999999999999999999999}',
    ):
        with pytest.raises(UnreadableOptionsError):
            bodies.answer("CONNZ", recorded(), request)


def test_health_says_its_code():
    assert json.loads(bodies.answer("HEALTHZ", recorded(), b"")) == {"status": "ok", "status_code": 200}


@pytest.mark.parametrize("name", sorted(bodies.ACCOUNT_BODIES))
def test_every_body_of_an_account_answers(name):
    source = recorded(facts={"jetstream": JETSTREAM}, accounts=[account("A")])

    body = json.loads(bodies.answer_account(name, "A", source, b""))

    assert isinstance(body, dict)


def test_a_request_cannot_leave_its_account():
    source = recorded(connections=[connection(1, account="A"), connection(2, account="B")])

    for request in (b'{"acc":"B"}', b'{"acc":"B","cid":2}', b'{"cid":2}'):
        body = json.loads(bodies.answer_account("CONNZ", "A", source, request))
        assert [entry["cid"] for entry in body["connections"]] in ([1], [])

    statz = json.loads(bodies.answer_account("STATZ", "$G", recorded(), b'{"accounts":["$SYS"]}'))
    assert [entry["acc"] for entry in statz["account_statz"]] == ["$G"]

    engine = RecordedEngine()
    bodies.answer_account("SUBSZ", "A", source_of(engine), b'{"account":"B","subscriptions":false}')
    assert engine.queries == [{"account": "A", "limit": 1024}]


def test_statistics_in_short():
    source = recorded(
        facts={"jetstream": JETSTREAM},
        total_connections=3,
        traffic=traffic(1, 2, 3, 4),
        accounts=[account("A", connections=1), account("B")],
    )

    body = as_json(statsz.build(source, statsz.StatszOptions()))

    assert body["sent"] == body["sent_to_clients"] == {"msgs": 3, "bytes": 4}
    assert body["received"] == body["received_from_clients"] == {"msgs": 1, "bytes": 2}
    assert (body["active_accounts"], body["active_servers"], body["total_connections"]) == (1, 1, 3)
    assert "store_dir" not in body["jetstream"]["config"]
    assert "jetstream" not in as_json(statsz.build(recorded(), statsz.StatszOptions()))


def test_the_head_of_a_reply_says_which_server_speaks():
    head = as_json(statsz.server_information(FACTS, sequence=7, now_unix_ns=NOW_NS))

    assert head == {
        "name": "here",
        "host": "127.0.0.1",
        "id": "NAID",
        "ver": "2.15.1",
        "jetstream": False,
        "flags": 0,
        "seq": 7,
        "time": "2023-11-14T23:15:23Z",
    }
    assert as_json(statsz.server_identity(FACTS)) == {"name": "here", "host": "127.0.0.1", "id": "NAID"}
