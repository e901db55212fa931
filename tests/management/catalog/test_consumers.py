"""The catalog of consumers: what is on disk comes back, and what cannot be served is left alone."""

import json

import pytest

from jetlake._engine import EngineError
from tests.management.api_twin import ApiTwin
from tests.management.engine_twin import EngineTwin

STREAM = ("$G", "S", b'{"config":{"name":"S"},"created":"then"}')


def opened(*definitions: bytes, engine: EngineTwin | None = None) -> ApiTwin:
    engine = engine or EngineTwin([STREAM])
    engine.stored_definitions["$G", "S"] = list(definitions)
    return ApiTwin(engine=engine)


def definition(name: str, **config: object) -> bytes:
    full = {"name": name, "deliver_policy": "all", "ack_policy": "explicit", "max_waiting": 512, **config}
    return json.dumps({"name": name, "config": full, "created": "then"}).encode()


def test_consumers_on_disk_are_opened():
    api = opened(definition("B"), definition("A", direct=True, deliver_subject="x"))

    assert api.ask("CONSUMER.NAMES.S")["consumers"] == ["B"]
    assert api.ask("CONSUMER.INFO.S.B")["created"] == "then"
    assert api.ask("STREAM.INFO.S")["state"]["consumer_count"] == 1
    assert api.ask("INFO")["consumers"] == 2


def test_definition_that_is_kept_is_the_one_that_is_read_again():
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S"})
    config = {"ack_policy": "explicit", "filter_subject": "<&>.é", "pause_until": "2100-01-01T00:00:00+02:00"}
    before = api.ask("CONSUMER.CREATE.S.C", {"stream_name": "S", "config": {**config, "backoff": [5, 6]}})
    kept = api.engine.find_consumer("$G", "S", "C").definition

    after = opened(kept).ask("CONSUMER.INFO.S.C")

    assert after["config"] == before["config"]
    assert after["created"] == before["created"]


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        (b'{"name":"C"', "its definition cannot be read: Input data was truncated"),
        (b'{"name":"C","config":{"tomorrow":1},"created":""}', "its definition cannot be read: invalid JSON"),
        (definition("C", metadata={"_nats.req.level": "6"}), "it needs API level 6, this server has 5"),
    ],
)
def test_consumer_that_can_not_be_served_is_left_alone(kept, reason):
    api = opened(kept, definition("B"))
    is_named = kept.endswith(b"}")
    name = "C" if is_named else ""

    assert api.findings[-1].startswith(f"Consumer '$G > S > {name}' is offline, its files stay as they are: {reason}")
    assert api.ask("CONSUMER.NAMES.S")["consumers"] == sorted([name, "B"])
    listed = api.ask("CONSUMER.LIST.S")
    assert (listed["total"], [each["name"] for each in listed["consumers"]], listed["missing"]) == (2, ["B"], [name])
    assert listed["offline"][name].startswith(reason)
    if is_named:
        for subject in ("INFO.S.C", "DELETE.S.C", "PAUSE.S.C"):
            assert api.error(f"CONSUMER.{subject}").startswith(f"10195 consumer is offline: {reason}")
        assert api.error("CONSUMER.CREATE.S.C", {"stream_name": "S"}).startswith("10195")


def test_engine_that_can_not_open_a_consumer_leaves_the_others():
    engine = EngineTwin([STREAM])
    open_consumer = engine.open_consumer

    def refuse_first(account: str, stream: str, definition: bytes) -> None:
        if b'"A"' in definition:
            raise EngineError("store", "its state is damaged")
        open_consumer(account, stream, definition)

    engine.open_consumer = refuse_first
    api = opened(definition("A"), definition("B"), engine=engine)

    assert api.error("CONSUMER.INFO.S.A") == "10195 consumer is offline: its state is damaged"
    assert "error" not in api.ask("CONSUMER.INFO.S.B")


@pytest.mark.parametrize(("level", "is_complete"), [("5", True), ("6", False)])
def test_engine_hears_whether_all_are_opened(level, is_complete):
    api = opened(definition("A"), definition("B", metadata={"_nats.req.level": level}))

    # What an absent consumer needs must stay.
    assert api.engine.streams["$G", "S"].are_consumers_opened is is_complete


def test_consumers_that_can_not_be_read_at_all_are_told_of():
    engine = EngineTwin([STREAM])

    def refuse(*_arguments: object) -> list[bytes]:
        raise EngineError("store", "permission denied")

    engine.stored_consumers = refuse

    assert opened(engine=engine).findings[-1] == "Stream '$G > S': its consumers cannot be read: permission denied"


def test_consumers_go_with_their_stream():
    api = opened(definition("C"), definition("D", metadata={"_nats.req.level": "6"}))

    api.ask("STREAM.DELETE.S")
    api.ask("STREAM.CREATE.S", {"name": "S"})

    assert api.ask("CONSUMER.NAMES.S")["consumers"] == []
    assert "error" not in api.ask("CONSUMER.CREATE.S.D", {"stream_name": "S"})


@pytest.mark.parametrize(
    ("subject", "body", "error"),
    [
        ("CREATE.S.NEW", {"stream_name": "S"}, "10012 disk full"),
        (
            "CREATE.S.C",
            {"stream_name": "S", "config": {"ack_policy": "explicit", "description": "x"}},
            "10012 disk full",
        ),
        ("PAUSE.S.C", {"pause_until": "2100-01-01T00:00:00Z"}, "10104 error creating store for consumer: disk full"),
        ("DELETE.S.C", {}, "10051 disk full"),
        ("RESET.S.C", {}, "10204 invalid reset: disk full"),
    ],
)
def test_what_the_engine_refuses_has_not_happened(subject, body, error):
    api = opened(definition("C"))
    before = api.ask("CONSUMER.LIST.S")["consumers"]
    api.engine.fail_with = EngineError("store", "disk full")

    assert api.error(f"CONSUMER.{subject}", body) == error

    api.engine.fail_with = None
    after = api.ask("CONSUMER.LIST.S")["consumers"]
    assert [each["config"] for each in after] == [each["config"] for each in before]


def test_consumer_that_the_engine_has_lost_is_not_found():
    api = opened(definition("C"))
    del api.engine.streams["$G", "S"].consumers["C"]

    assert api.error("CONSUMER.INFO.S.C") == "10014 consumer not found"
    api.engine.streams.clear()
    assert api.error("CONSUMER.INFO.S.C") == "10059 stream not found"
