"""The endpoints of consumers, on an engine of dictionaries."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.streams.context import StreamAccountLimits
from jetlake.server.monitoring.usages import account_usages
from tests.management.api_twin import SETTINGS, ApiTwin
from tests.management.engine_twin import TwinConsumerEvent
from tests.management.schemas import problems_of

PULL = {"stream_name": "S", "config": {"ack_policy": "explicit"}}


@pytest.fixture
def api() -> ApiTwin:
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
    return api


@pytest.mark.parametrize("subject", ["CREATE.S.C", "CREATE.S.C.s.a", "DURABLE.CREATE.S.C"])
def test_consumer_is_made_by_every_form_of_the_subject(api, subject):
    config = {"ack_policy": "explicit", "durable_name": "C", "filter_subject": "s.a"}

    answer = api.ask(f"CONSUMER.{subject}", {"stream_name": "S", "config": config})

    assert (answer["stream_name"], answer["name"], answer["config"]["filter_subject"]) == ("S", "C", "s.a")
    assert json.loads(api.engine.find_consumer("$G", "S", "C").definition)["name"] == "C"


def test_name_is_made_up_by_the_oldest_form(api):
    answer = api.ask("CONSUMER.CREATE.S", PULL)

    assert len(answer["name"]) == 8
    assert "name" not in answer["config"]
    assert api.ask("CONSUMER.NAMES.S")["consumers"] == [answer["name"]]


def test_consumer_is_changed_by_the_same_request(api):
    created = api.ask("CONSUMER.CREATE.S.C", PULL)["created"]

    changed = api.ask("CONSUMER.CREATE.S.C", {**PULL, "config": {"ack_policy": "explicit", "description": "x"}})

    assert (changed["created"], changed["config"]["description"]) == (created, "x")
    assert json.loads(api.engine.find_consumer("$G", "S", "C").definition)["config"]["description"] == "x"


def test_stream_of_a_consumer_must_be_there_and_be_the_one_in_the_subject():
    api = ApiTwin()

    assert api.error("CONSUMER.CREATE.S", {"stream_name": "S"}) == "10059 stream not found"
    assert api.error("CONSUMER.CREATE.S", {"stream_name": "T"}).startswith("10056")
    assert api.error("CONSUMER.CREATE.S", b"x").startswith("10025")


def test_deleted_consumer_is_gone(api):
    api.ask("CONSUMER.CREATE.S.C", PULL)

    assert api.error("CONSUMER.DELETE.S.C", {"x": 1}).startswith("10038")
    assert api.ask("CONSUMER.DELETE.S.C")["success"]
    assert api.error("CONSUMER.DELETE.S.C") == "10014 consumer not found"
    assert not api.engine.streams["$G", "S"].consumers


def test_long_lists_are_told_in_pages(api):
    for number in range(1_030):
        api.ask(f"CONSUMER.CREATE.S.C{number:04}", PULL)

    names = api.ask("CONSUMER.NAMES.S", {"offset": 1_000})

    assert (names["total"], names["offset"], names["consumers"][0], len(names["consumers"])) == (
        1030,
        1000,
        "C1000",
        30,
    )
    assert len(api.ask("CONSUMER.NAMES.S")["consumers"]) == 1_024
    assert len(api.ask("CONSUMER.LIST.S")["consumers"]) == 256
    assert [each["name"] for each in api.ask("CONSUMER.LIST.S", {"offset": 1_029})["consumers"]] == ["C1029"]


def test_pause_is_kept_and_ends_by_an_empty_request(api):
    api.ask("CONSUMER.CREATE.S.C", PULL)

    paused = api.ask("CONSUMER.PAUSE.S.C", {"pause_until": "2100-01-01T00:00:00+02:00"})

    assert (paused["paused"], paused["pause_until"]) == (True, "2099-12-31T22:00:00Z")
    assert paused["pause_remaining"] > 0
    assert api.ask("CONSUMER.INFO.S.C")["paused"]
    kept = json.loads(api.engine.find_consumer("$G", "S", "C").definition)["config"]
    assert (kept["pause_until"], kept["metadata"]) == ("2099-12-31T22:00:00Z", {"_nats.req.level": "1"})
    assert api.ask("CONSUMER.PAUSE.S.C") == {
        "type": "io.nats.jetstream.api.v1.consumer_pause_response",
        "paused": False,
        "pause_until": "0001-01-01T00:00:00Z",
    }
    assert "pause_until" not in api.ask("CONSUMER.INFO.S.C")["config"]


def test_group_is_unpinned(api):
    config = {"ack_policy": "explicit", "priority_policy": "pinned_client", "priority_groups": ["g"]}
    api.ask("CONSUMER.CREATE.S.C", {"stream_name": "S", "config": config})
    api.engine.find_consumer("$G", "S", "C").pinned = {"id": "x", "since_ns": 1}
    assert api.ask("CONSUMER.INFO.S.C")["priority_groups"][0]["pinned_client_id"] == "x"

    assert api.error("CONSUMER.UNPIN.S.C", {"group": "h"}).startswith("10160")
    assert api.ask("CONSUMER.UNPIN.S.C", {"group": "g"}) == {"type": "io.nats.jetstream.api.v1.consumer_unpin_response"}
    assert "pinned_client_id" not in api.ask("CONSUMER.INFO.S.C")["priority_groups"][0]


@pytest.mark.parametrize(
    ("config", "sequence", "problem"),
    [
        ({}, 3, ""),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 2}, 2, ""),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 2}, 1, "below start seq"),
        ({"deliver_policy": "by_start_time", "opt_start_time": "2000-01-01T00:00:00Z"}, 1, ""),
        ({"deliver_policy": "by_start_time", "opt_start_time": "2100-01-01T00:00:00Z"}, 3, "below start time"),
        ({"deliver_policy": "new"}, 3, "not allowed"),
        ({"deliver_policy": "new"}, 0, ""),
    ],
)
def test_reset_goes_back_to_where_the_consumer_could_have_begun(api, config, sequence, problem):
    for _ in range(3):
        api.publish("S", "s.a")
    api.ask("CONSUMER.CREATE.S.C", {"stream_name": "S", "config": {"ack_policy": "explicit", **config}})
    body = {"seq": sequence} if sequence else b""

    if problem:
        assert api.error("CONSUMER.RESET.S.C", body) == f"10204 invalid reset: {problem}"
    else:
        answer = api.ask("CONSUMER.RESET.S.C", body)
        assert answer["reset_seq"] == (sequence or 4)
        assert answer["ack_floor"] == {"consumer_seq": 0, "stream_seq": answer["reset_seq"] - 1}


def test_reset_is_neither_counted_nor_told_and_needs_somebody_who_waits(api):
    api.engine.interest.add("$JS.EVENT.ADVISORY.API")
    api.ask("CONSUMER.CREATE.S.C", PULL)
    before = api.ask("INFO")["api"]["total"]
    told = len(api.engine.published)

    api.ask("CONSUMER.RESET.S.C")
    api.error("CONSUMER.RESET.S.C", b"x")

    assert api.request("CONSUMER.RESET.S.NOPE") is None
    assert api.request("CONSUMER.RESET.NOPE.C") is None
    assert len(api.engine.published) == told + 2
    assert api.ask("INFO")["api"]["total"] == before + 1


def test_copies_are_told_which_stream_it_is_and_are_not_listed(api):
    config = {"name": "JS_MIRROR_x", "direct": True, "sourcing": True, "deliver_subject": "x"}
    body = json.dumps({"stream_name": "S", "config": config}).encode()

    answer = api.request("CONSUMER.CREATE.S", body)

    head, _, _ = answer.partition(b"\r\n\r\n")
    identity = head.removeprefix(b"NATS/1.0\r\nNats-Stream-Identity: ")
    assert len(identity) == 8
    header = b"NATS/1.0\r\nNats-Stream-Identity: %s\r\n\r\n"
    assert b'"error"' not in api.request("CONSUMER.CREATE.S", body, header % identity)
    assert b'"err_code":10225' in api.request("CONSUMER.CREATE.S", body, header % b"other")
    assert api.ask("CONSUMER.NAMES.S")["consumers"] == []
    assert api.ask("STREAM.INFO.S")["state"]["consumer_count"] == 0
    assert api.ask("INFO")["consumers"] == 2


def test_consumer_that_nobody_uses_is_deleted(api):
    api.engine.interest.add("$JS.EVENT.ADVISORY.CONSUMER.DELETED.S.C")
    api.ask("CONSUMER.CREATE.S.C", PULL)

    for stream, name in (("S", "C"), ("S", "C"), ("T", "C")):
        api.manager._consumers.note(TwinConsumerEvent(account="$G", stream=stream, name=name))

    assert api.ask("CONSUMER.NAMES.S")["consumers"] == []
    assert len([each for each in api.engine.published if each[1].endswith("CONSUMER.DELETED.S.C")]) == 1


def test_limits_of_a_stream_heed_its_consumers(api):
    api.ask("CONSUMER.CREATE.S.C", PULL)

    body = {"name": "S", "subjects": ["s.>"], "consumer_limits": {"max_ack_pending": 5}}
    assert api.error("STREAM.UPDATE.S", body) == "10069 change to limits violates consumers: C"
    api.ask("CONSUMER.DELETE.S.C")
    assert "error" not in api.ask("STREAM.UPDATE.S", body)


def test_consumers_of_another_account_are_its_own():
    api = ApiTwin(msgspec.structs.replace(SETTINGS, accounts={"A": StreamAccountLimits(), "B": StreamAccountLimits()}))
    for account in "AB":
        api.ask("STREAM.CREATE.S", {"name": "S"}, account=account)
    api.ask("CONSUMER.CREATE.S.C", PULL, account="A")

    assert api.error("CONSUMER.INFO.S.C", account="B") == "10014 consumer not found"
    assert api.ask("CONSUMER.INFO.S.C", account="A")["name"] == "C"


def test_monitoring_sees_consumers(api):
    api.ask("CONSUMER.CREATE.S.C", PULL)
    hidden = {"deliver_subject": "x", "direct": True}
    api.request("CONSUMER.CREATE.S.HIDDEN", json.dumps({"stream_name": "S", "config": hidden}).encode())

    (usage,) = account_usages(api.catalog, api.manager.accounts, SETTINGS)

    (stream,) = usage.streams
    assert (usage.consumer_count, stream["state"]["consumer_count"]) == (1, 1)
    assert [each["name"] for each in stream["consumer_detail"]()] == ["C"]
    assert [each["name"] for each in stream["direct_consumer_detail"]()] == ["HIDDEN"]


def test_answers_fit_the_published_schemas(api):
    pinned = {"ack_policy": "explicit", "priority_policy": "pinned_client", "priority_groups": ["g"]}

    for subject, body, schema in (
        ("CREATE.S.C", {"stream_name": "S", "config": pinned}, "consumer_create_response"),
        ("CREATE.S.C", {"stream_name": "T"}, "consumer_create_response"),
        ("NAMES.S", b"", "consumer_names_response"),
        ("LIST.S", b"", "consumer_list_response"),
        ("INFO.S.C", b"", "consumer_info_response"),
        ("INFO.S.NOPE", b"", "consumer_info_response"),
        ("PAUSE.S.C", {"pause_until": "2100-01-01T00:00:00Z"}, "consumer_pause_response"),
        ("PAUSE.S.NOPE", b"", "consumer_pause_response"),
        ("UNPIN.S.C", {"group": "g"}, "consumer_unpin_response"),
        ("RESET.S.C", b"", "consumer_reset_response"),
        ("DELETE.S.C", b"", "consumer_delete_response"),
        ("DELETE.S.C", b"", "consumer_delete_response"),
    ):
        assert problems_of(api.ask(f"CONSUMER.{subject}", body), schema) == [], subject


WORDS = ["a", "C", "a.>", "*", "explicit", "all", "new", "pinned_client", "5%", "2100-01-01T00:00:00+23:00"]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=4,
)
CONFIGS = st.dictionaries(st.sampled_from(ConsumerConfig.__struct_fields__), VALUES, max_size=5)


@settings(deadline=None)
@given(CONFIGS, CONFIGS, st.sampled_from(["S", "WORK"]), st.booleans())
def test_whatever_is_asked_for_our_code_does_not_break(first, second, stream, is_strict):
    api = ApiTwin(msgspec.structs.replace(SETTINGS, is_strict=is_strict))
    api.ask("STREAM.CREATE.S", {"name": "S"})
    api.ask("STREAM.CREATE.WORK", {"name": "WORK", "retention": "workqueue", "storage": "memory"})

    for name in ("C", "C", "D"):
        for config in (first, {**first, "ack_policy": "explicit"}, second):
            body = json.dumps({"stream_name": stream, "config": config}).encode(errors="surrogatepass")
            api.request(f"CONSUMER.CREATE.{stream}.{name}", body)
    for subject in ("NAMES", "LIST"):
        api.ask(f"CONSUMER.{subject}.{stream}")
    for consumer in api.engine.streams["$G", stream].consumers.values():
        kept = json.dumps(json.loads(consumer.definition)["config"]).encode()
        assert json.loads(msgspec.json.encode(ConsumerConfig.from_json(kept).to_json())) == json.loads(kept)

    assert not api.warnings
