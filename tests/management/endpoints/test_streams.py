"""The endpoints of streams: what they tell the engine, and what happens when it fails."""

import json

import msgspec
import pytest

from jetlake._engine import EngineError
from jetlake.management.streams.config import StreamConfig
from tests.management.api_twin import SETTINGS, ApiTwin
from tests.management.schemas import problems_of

FULL_DISK = EngineError("store", "the disk is full: free some space")


@pytest.fixture
def api() -> ApiTwin:
    return ApiTwin()


def test_engine_is_told_the_whole_definition(api):
    answer = api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})

    definition = json.loads(api.engine.streams["$G", "S"].definition)
    assert definition["created"] == answer["created"]
    assert definition["config"]["subjects"] == ["s.>"]
    assert definition["config"]["duplicate_window"] == 120_000_000_000
    # Of the versions only the one that the stream needs is kept.
    assert definition["config"]["metadata"] == {"_nats.req.level": "0"}


def test_stream_that_is_there_already_is_found_and_not_made_again(api):
    first = api.ask("STREAM.CREATE.S", {"name": "S"})
    api.engine.interest.add("$JS.EVENT.ADVISORY.STREAM.CREATED.S")
    api.publish("S", "S")

    second = api.ask("STREAM.CREATE.S", {"name": "S"})

    assert second["did_create"]
    assert second["created"] == first["created"]
    assert second["state"]["messages"] == 1
    assert [subject for _, subject, _, _ in api.engine.published].count("$JS.EVENT.ADVISORY.STREAM.CREATED.S") == 0


@pytest.mark.parametrize(
    ("subject", "body", "error"),
    [
        ("STREAM.CREATE.T", {"name": "T"}, "10049 the disk is full: free some space"),
        ("STREAM.UPDATE.S", {"name": "S", "max_msgs": 1}, "10069 the disk is full: free some space"),
        ("STREAM.DELETE.S", b"", "10050 the disk is full: free some space"),
        ("STREAM.PURGE.S", b"", "10051 the disk is full: free some space"),
        ("STREAM.INFO.S", b"", "10051 the disk is full: free some space"),
        ("STREAM.MSG.DELETE.S", {"seq": 1}, "10057 the disk is full: free some space"),
    ],
)
def test_what_the_disk_refuses_has_not_happened(api, subject, body, error):
    api.ask("STREAM.CREATE.S", {"name": "S"})
    before = api.ask("STREAM.LIST")["streams"][0]["config"]
    api.engine.fail_with = FULL_DISK

    assert api.error(subject, body) == error

    api.engine.fail_with = None
    assert api.ask("STREAM.NAMES")["streams"] == ["S"]
    assert api.ask("STREAM.LIST")["streams"][0]["config"] == before


def test_stream_that_the_engine_does_not_know_is_not_found(api):
    api.ask("STREAM.CREATE.S", {"name": "S"})
    del api.engine.streams["$G", "S"]

    assert api.error("STREAM.INFO.S") == "10059 stream not found"


def test_room_is_reserved_and_given_back(api):
    limits = msgspec.structs.replace(SETTINGS.server, max_storage=1_000)
    api = ApiTwin(msgspec.structs.replace(SETTINGS, server=limits))

    api.ask("STREAM.CREATE.S", {"name": "S", "max_bytes": 900})
    assert api.error("STREAM.CREATE.T", {"name": "T", "max_bytes": 101}).startswith("10047")
    api.ask("STREAM.UPDATE.S", {"name": "S", "max_bytes": 500})
    assert "error" not in api.ask("STREAM.CREATE.T", {"name": "T", "max_bytes": 101})
    api.ask("STREAM.DELETE.S")
    assert "error" not in api.ask("STREAM.CREATE.U", {"name": "U", "max_bytes": 899})


def test_subjects_of_another_account_are_free():
    accounts = {"A": SETTINGS.accounts["$G"], "B": SETTINGS.accounts["$G"]}
    api = ApiTwin(msgspec.structs.replace(SETTINGS, accounts=accounts))

    assert "error" not in api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["x.*"]}, account="A")
    assert "error" not in api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["x.>"]}, account="B")
    assert api.error("STREAM.CREATE.T", {"name": "T", "subjects": ["x.y"]}, account="A").startswith("10065")
    assert api.ask("STREAM.NAMES", account="B")["total"] == 1


def test_names_and_descriptions_come_in_pages(api):
    for number in range(1_030):
        api.catalog.create("$G", StreamConfig(name=f"S{number:04d}", subjects=(f"s.{number}",)))

    names = api.ask("STREAM.NAMES", {"offset": 1_000})
    descriptions = api.ask("STREAM.LIST", {"offset": 1_029})

    assert (names["total"], names["offset"], names["streams"][0], len(names["streams"])) == (1_030, 1_000, "S1000", 30)
    assert len(api.ask("STREAM.NAMES")["streams"]) == 1_024
    assert len(api.ask("STREAM.LIST")["streams"]) == 256
    assert [each["config"]["name"] for each in descriptions["streams"]] == ["S1029"]
    assert api.ask("STREAM.NAMES", {"subject": "s.7"})["streams"] == ["S0007"]


def test_purge_tells_the_engine_what_to_remove(api):
    api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
    for subject in ("s.a", "s.b", "s.a", "s.a"):
        api.publish("S", subject)

    assert api.ask("STREAM.PURGE.S", {"filter": "s.a", "keep": 1})["purged"] == 2
    assert api.ask("STREAM.PURGE.S", {"seq": 3})["purged"] == 1
    assert api.ask("STREAM.PURGE.S", b"anything else")["purged"] == 1
    assert api.ask("STREAM.INFO.S")["state"]["first_seq"] == 5


def test_answers_fit_the_published_schemas(api):
    api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"], "metadata": {"a": "b"}})
    api.publish("S", "s.a")
    api.publish("S", "s.b")

    for subject, body, schema in (
        ("STREAM.CREATE.T", {"name": "T", "mirror": {"name": "S"}}, "stream_create_response"),
        ("STREAM.CREATE.U", {"name": "T"}, "stream_create_response"),
        ("STREAM.UPDATE.S", {"name": "S", "subjects": ["s.>"]}, "stream_update_response"),
        ("STREAM.NAMES", b"", "stream_names_response"),
        ("STREAM.LIST", b"", "stream_list_response"),
        ("STREAM.MSG.DELETE.S", {"seq": 1}, "stream_msg_delete_response"),
        ("STREAM.INFO.S", {"subjects_filter": ">", "deleted_details": True}, "stream_info_response"),
        ("STREAM.INFO.NOPE", b"", "stream_info_response"),
        ("STREAM.PURGE.S", b"", "stream_purge_response"),
        ("STREAM.DELETE.S", b"", "stream_delete_response"),
        ("STREAM.DELETE.S", b"", "stream_delete_response"),
        ("CONSUMER.NAMES.T", b"", "consumer_names_response"),
        ("CONSUMER.LIST.T", b"", "consumer_list_response"),
        ("INFO", b"", "account_info_response"),
    ):
        assert problems_of(api.ask(subject, body), schema) == [], subject


def test_schemas_refuse_what_does_not_fit(api):
    answer = api.ask("STREAM.INFO.NOPE")

    assert problems_of({**answer, "type": "other"}, "stream_info_response")
    assert problems_of({"type": answer["type"]}, "stream_info_response")
