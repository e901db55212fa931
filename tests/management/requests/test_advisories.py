"""What is told without being asked: to those who listen, and only then."""

import json

import msgspec
import pytest

from tests.management.api_twin import SETTINGS, ApiTwin
from tests.management.engine_twin import TwinRequest
from tests.management.schemas import problems_of

PREFIX = "$JS.EVENT.ADVISORY."
CONNECTION = {
    "id": 7,
    "ip": "127.0.0.1",
    "port": 4,
    "started_unix_ns": 1_700_000_000_000_000_000,
    "last_activity_unix_ns": 0,
    "round_trip_ns": 5,
    "name": "ada's",
    "account": "$G",
}


def told(api: ApiTwin, subject: str) -> list[dict[str, object]]:
    return [json.loads(payload) for _, on, payload, _ in api.engine.published if on == PREFIX + subject]


def listening(*subjects: str, **settings: object) -> ApiTwin:
    api = ApiTwin(msgspec.structs.replace(SETTINGS, **settings))
    api.engine.interest.update(PREFIX + subject for subject in subjects)
    api.engine.connections_json = json.dumps([CONNECTION]).encode()
    return api


@pytest.mark.parametrize("domain", ["", "hub"])
def test_creation_update_and_deletion_of_a_stream_are_told(domain):
    api = listening("STREAM.CREATED.S", "STREAM.UPDATED.S", "STREAM.DELETED.S", domain=domain)

    api.ask("STREAM.CREATE.S", {"name": "S"})
    api.ask("STREAM.UPDATE.S", {"name": "S"})
    api.ask("STREAM.DELETE.S")

    for word, action in (("CREATED", "create"), ("UPDATED", "modify"), ("DELETED", "delete")):
        (advisory,) = told(api, f"STREAM.{word}.S")
        # The published schema does not know the domain; nats-server tells it all the same.
        assert advisory.pop("domain", "") == domain
        assert (advisory["stream"], advisory["action"]) == ("S", action)
        assert problems_of(advisory, "stream_action") == []


def test_request_and_answer_are_told_with_who_asked():
    api = listening("API")

    answer = api.request("STREAM.INFO.S", b"x")

    (advisory,) = told(api, "API")
    assert advisory["subject"] == "$JS.API.STREAM.INFO.S"
    assert advisory["request"] == "x"
    assert advisory["response"] == answer.decode()
    assert list(advisory["client"]) == ["start", "host", "id", "acc", "name", "rtt", "server", "kind", "client_type"]
    assert problems_of(advisory, "api_audit") == []


def test_sender_who_has_gone_is_told_by_what_is_known_of_him():
    api = listening("API")
    api.engine.connections_json = b"[]"

    api.request("STREAM.NAMES")

    (advisory,) = told(api, "API")
    assert advisory["client"] == {"id": 7, "acc": "$G", "server": "probe", "kind": "Client", "client_type": "nats"}
    assert "request" not in advisory


def test_nothing_is_told_to_nobody():
    api = ApiTwin()

    api.ask("STREAM.CREATE.S", {"name": "S"})

    assert [subject for _, subject, _, _ in api.engine.published] == ["reply"]


def test_request_without_a_reply_subject_is_obeyed_counted_and_told():
    api = listening("API", "STREAM.CREATED.S")

    api.manager.answer(TwinRequest(subject="$JS.API.STREAM.CREATE.S", payload=b'{"name":"S"}', reply=""))

    assert [subject for _, subject, _, _ in api.engine.published] == [PREFIX + "STREAM.CREATED.S", PREFIX + "API"]
    assert api.ask("INFO")["api"]["total"] == 1


def test_reply_subject_that_is_none_is_the_sender_s_problem():
    api = ApiTwin()

    api.manager.answer(TwinRequest(subject="$JS.API.STREAM.NAMES", reply="not a subject"))

    assert api.engine.published == []
    assert api.warnings == []


@pytest.mark.parametrize("domain", ["", "hub"])
def test_creation_pause_and_deletion_of_a_consumer_are_told(domain):
    api = listening(*(f"CONSUMER.{word}.S.C" for word in ("CREATED", "DELETED", "PAUSE")), domain=domain)
    api.ask("STREAM.CREATE.S", {"name": "S"})

    api.ask("CONSUMER.CREATE.S.C", {"stream_name": "S", "config": {"ack_policy": "explicit"}})
    api.ask("CONSUMER.PAUSE.S.C", {"pause_until": "2100-01-01T00:00:00+02:00"})
    api.ask("CONSUMER.PAUSE.S.C")
    api.ask("CONSUMER.DELETE.S.C")

    for word, action in (("CREATED", "create"), ("DELETED", "delete")):
        (advisory,) = told(api, f"CONSUMER.{word}.S.C")
        assert advisory.pop("domain", "") == domain
        assert (advisory["stream"], advisory["consumer"], advisory["action"]) == ("S", "C", action)
        assert problems_of(advisory, "consumer_action") == []
    pauses = told(api, "CONSUMER.PAUSE.S.C")
    assert [(pause["paused"], pause["pause_until"]) for pause in pauses] == [
        (True, "2099-12-31T22:00:00Z"),
        (False, "0001-01-01T00:00:00Z"),
    ]
    for pause in pauses:
        pause.pop("domain", None)
        assert problems_of(pause, "consumer_pause") == []


def test_consumers_of_a_deleted_stream_are_told_before_it():
    api = listening("CONSUMER.DELETED.S.A", "CONSUMER.DELETED.S.B", "STREAM.DELETED.S")
    api.ask("STREAM.CREATE.S", {"name": "S"})
    for name in "BA":
        api.ask(f"CONSUMER.CREATE.S.{name}", {"stream_name": "S"})

    api.ask("STREAM.DELETE.S")

    subjects = [subject.removeprefix(PREFIX) for _, subject, _, _ in api.engine.published if subject != "reply"]
    assert subjects == ["CONSUMER.DELETED.S.A", "CONSUMER.DELETED.S.B", "STREAM.DELETED.S"]
