"""The endpoints of streams: what each answers, and how requests are read and refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import (
    API,
    SECOND_NS,
    TYPE,
    ZERO_TIME,
    Body,
    Headers,
    JetStream,
    normal,
)

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

NOT_FOUND = (404, 10059, "stream not found")
BAD_REQUEST = (400, 10003, "bad request")
NOT_EMPTY = (400, 10038, "expected an empty request payload")
NAME_DIFFERS = (400, 10056, "stream name in subject does not match request")
NEEDS_CLUSTER = (503, 10010, "JetStream clustering support required")
API_LEVEL = (412, 10185, "JetStream minimum api level required")
INVALID_JSON = 10025

DEFAULT_CONFIG = {
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "max_msgs_per_subject": -1,
    "max_msg_size": -1,
    "discard": "old",
    "storage": "file",
    "num_replicas": 1,
    "duplicate_window": 120 * SECOND_NS,
    "compression": "none",
    "allow_direct": False,
    "mirror_direct": False,
    "sealed": False,
    "deny_delete": False,
    "deny_purge": False,
    "allow_rollup_hdrs": False,
    "consumer_limits": {},
    "allow_msg_ttl": False,
}
EMPTY_STATE = {
    "messages": 0,
    "bytes": 0,
    "first_seq": 0,
    "first_ts": ZERO_TIME,
    "last_seq": 0,
    "last_ts": ZERO_TIME,
    "consumer_count": 0,
}
VERSION_METADATA = {"_nats.level": "5", "_nats.req.level": "0", "_nats.ver": "..."}


def with_type(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": TYPE + name, **fields}


def error(expected: tuple[int, int, str]) -> dict[str, Any]:
    code, err_code, description = expected
    return {"code": code, "err_code": err_code, "description": description}


def new_info(stream: str) -> dict[str, Any]:
    """What is said of a stream just created with its default configuration, and when."""
    config = {"name": stream, "subjects": [stream], **DEFAULT_CONFIG, "metadata": VERSION_METADATA}
    return {"config": config, "created": "TIME", "state": EMPTY_STATE, "ts": "TIME"}


# Success


def test_create_answers_with_the_whole_configuration(js: JetStream, stream: str) -> None:
    answer = js.api(f"STREAM.CREATE.{stream}", {"name": stream})

    assert normal(answer) == with_type("stream_create_response", **new_info(stream), did_create=True)


def test_create_again_with_the_same_configuration_answers_the_same(js: JetStream, stream: str) -> None:
    first = js.create(stream, max_msgs=5, metadata={"a": "b"})
    again = js.create(stream, max_msgs=5, metadata={"a": "b"}, num_replicas=1, max_bytes=-1)

    assert normal(again) == normal(first)
    assert again["created"] == first["created"]


def test_create_again_with_another_configuration_is_refused(js: JetStream, stream: str) -> None:
    js.create(stream)

    refused = js.create_error(stream, max_msgs=5)

    assert refused == (400, 10058, "stream name already in use with a different configuration")


def test_update_answers_with_the_new_configuration(js: JetStream, stream: str) -> None:
    js.create(stream, subjects=[stream])

    answer = js.api(f"STREAM.UPDATE.{stream}", {"name": stream, "max_msgs": 5})

    info = new_info(stream)
    info["config"]["max_msgs"] = 5
    assert normal(answer) == with_type("stream_update_response", **info)


def test_info_names_the_server_as_leader(js: JetStream, stream: str) -> None:
    js.create(stream, subjects=[stream])

    answer = js.api(f"STREAM.INFO.{stream}")

    leader = {"leader": js.raw.info["server_name"]}
    paging = {"total": 0, "offset": 0, "limit": 0}
    assert normal(answer) == with_type("stream_info_response", **paging, **new_info(stream), cluster=leader)


def test_list_shows_only_stored_metadata_and_no_leader(js: JetStream, stream: str) -> None:
    js.create(stream, subjects=[stream])

    answer = js.api("STREAM.LIST", {"subject": stream})

    info = new_info(stream)
    info["config"]["metadata"] = {"_nats.req.level": "0"}
    assert normal(answer) == with_type("stream_list_response", total=1, offset=0, limit=256, streams=[info])


def test_delete_answers_success_and_the_stream_is_gone(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.api(f"STREAM.DELETE.{stream}") == with_type("stream_delete_response", success=True)
    assert js.error(f"STREAM.INFO.{stream}") == NOT_FOUND
    assert js.request(f"{stream}.a").status == "503"


def test_purge_get_and_delete_of_messages_answer_with_their_types(js: JetStream, stream: str) -> None:
    js.create(stream)
    for _ in range(3):
        js.publish(f"{stream}.a", b"hello")

    message = js.api(f"STREAM.MSG.GET.{stream}", {"seq": 2})
    deleted = js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 2})
    purged = js.api(f"STREAM.PURGE.{stream}")

    stored = {"subject": f"{stream}.a", "seq": 2, "data": "aGVsbG8=", "time": "TIME"}
    assert normal(message) == with_type("stream_msg_get_response", message=stored)
    assert deleted == with_type("stream_msg_delete_response", success=True)
    assert purged == with_type("stream_purge_response", success=True, purged=2)


def test_answers_escape_angle_brackets_and_have_no_headers(js: JetStream, stream: str) -> None:
    js.create(stream)

    answer = js.api_message(f"STREAM.INFO.{stream}")

    assert answer.headers == b""
    assert rf'"subjects":["{stream}.\u003e"]'.encode() in answer.data


# Errors and their zero fields


@pytest.mark.parametrize(
    ("endpoint", "body", "kind", "expected", "zero_fields"),
    [
        ("STREAM.CREATE.NONE", None, "stream_create_response", NAME_DIFFERS, {}),
        ("STREAM.CREATE.NONE", {"name": "OTHER"}, "stream_create_response", NAME_DIFFERS, {}),
        ("STREAM.UPDATE.NONE", {"name": "OTHER"}, "stream_update_response", NAME_DIFFERS, {}),
        ("STREAM.UPDATE.NONE", {"name": "NONE"}, "stream_update_response", NOT_FOUND, {}),
        ("STREAM.INFO.NONE", None, "stream_info_response", NOT_FOUND, {"total": 0, "offset": 0, "limit": 0}),
        ("STREAM.DELETE.NONE", None, "stream_delete_response", NOT_FOUND, {}),
        ("STREAM.PURGE.NONE", None, "stream_purge_response", NOT_FOUND, {"purged": 0}),
        ("STREAM.PURGE.NONE", {"seq": 1, "keep": 1}, "stream_purge_response", BAD_REQUEST, {"purged": 0}),
        ("STREAM.MSG.GET.NONE", None, "stream_msg_get_response", BAD_REQUEST, {}),
        ("STREAM.MSG.GET.NONE", {"seq": 1}, "stream_msg_get_response", NOT_FOUND, {}),
        ("STREAM.MSG.DELETE.NONE", None, "stream_msg_delete_response", BAD_REQUEST, {}),
        ("STREAM.MSG.DELETE.NONE", {"seq": 1}, "stream_msg_delete_response", NOT_FOUND, {}),
        ("STREAM.SNAPSHOT.NONE", None, "stream_snapshot_response", BAD_REQUEST, {}),
        ("STREAM.SNAPSHOT.NONE", {"deliver_subject": "x"}, "stream_snapshot_response", NOT_FOUND, {}),
        ("STREAM.RESTORE.NONE", None, "stream_restore_response", BAD_REQUEST, {"deliver_subject": ""}),
    ],
)
def test_error_keeps_the_type_and_the_zero_fields(
    js: JetStream, endpoint: str, body: Body, kind: str, expected: tuple[int, int, str], zero_fields: dict[str, Any]
) -> None:
    assert js.api(endpoint, body) == with_type(kind, error=error(expected), **zero_fields)


def test_update_without_a_body_misses_the_name(js: JetStream) -> None:
    required = "stream name is required and can not contain '.', '*', '>', '\\', '/'"

    assert js.error("STREAM.UPDATE.NONE") == (500, 10052, required)


@pytest.mark.parametrize(
    ("endpoint", "kind", "streams"),
    [("STREAM.NAMES", "stream_names_response", None), ("STREAM.LIST", "stream_list_response", [])],
)
def test_error_of_a_list_keeps_its_zero_fields(js: JetStream, endpoint: str, kind: str, streams: Any) -> None:
    answer = js.api(endpoint, '{"offset":"1"}')

    assert answer.pop("error")["err_code"] == INVALID_JSON
    assert answer == with_type(kind, total=0, offset=0, limit=0, streams=streams)


# Paging


@pytest.fixture
def page_streams(js: JetStream, stream: str) -> list[str]:
    names = [f"{stream}-{letter}" for letter in "BAC"]
    for number, name in enumerate(names):
        js.create(name, subjects=[f"{stream}.page.{number}"], storage="memory")
    return sorted(names)


@pytest.mark.parametrize(("offset", "shown_offset"), [(None, 0), (-4, 0), (0, 0), (1, 1), (2, 2), (3, 3), (99, 3)])
def test_names_are_sorted_and_the_offset_stays_between_zero_and_total(
    js: JetStream, stream: str, page_streams: list[str], offset: int | None, shown_offset: int
) -> None:
    body = {"subject": f"{stream}.page.*"} | ({} if offset is None else {"offset": offset})

    names = js.api("STREAM.NAMES", body)
    infos = js.api("STREAM.LIST", body)

    paging = {"total": 3, "offset": shown_offset}
    page = page_streams[shown_offset:]
    assert names == with_type("stream_names_response", **paging, limit=1024, streams=page or None)
    assert [info["config"]["name"] for info in infos.pop("streams")] == page
    assert infos == with_type("stream_list_response", **paging, limit=256)


@pytest.mark.parametrize(
    ("tail", "count"), [("page.1", 1), ("page.*", 3), (">", 3), ("*.1", 1), ("page", 0), ("page.9", 0), ("..", 0)]
)
def test_subject_keeps_the_streams_that_overlap_with_it(
    js: JetStream, stream: str, page_streams: list[str], tail: str, count: int
) -> None:
    answer = js.api("STREAM.NAMES", {"subject": f"{stream}.{tail}"})

    assert answer["total"] == count
    assert len(answer["streams"] or []) == count


def test_subject_of_a_filter_may_be_narrower_than_the_streams(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.api("STREAM.NAMES", {"subject": f"{stream}.a.b.c"})["streams"] == [stream]


def test_streams_without_subjects_match_no_filter(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.create(f"{stream}-M", mirror={"name": stream})

    assert js.api("STREAM.NAMES", {"subject": f"{stream}.>"})["streams"] == [stream]
    assert f"{stream}-M" in js.api("STREAM.NAMES")["streams"]


def test_subjects_of_a_stream_are_counted_page_by_page(js: JetStream, stream: str) -> None:
    js.create(stream)
    for tail in "bacab":
        js.publish(f"{stream}.{tail}")

    everything = js.info(stream, {"subjects_filter": ">"})
    second_page = js.info(stream, {"subjects_filter": f"{stream}.*", "offset": 1})
    nothing = js.info(stream, {"subjects_filter": "none.>"})

    assert everything["state"]["num_subjects"] == 3
    assert everything["state"]["subjects"] == {f"{stream}.a": 2, f"{stream}.b": 2, f"{stream}.c": 1}
    assert (everything["total"], everything["offset"], everything["limit"]) == (3, 0, 100_000)
    assert second_page["state"]["subjects"] == {f"{stream}.b": 2, f"{stream}.c": 1}
    assert (second_page["total"], second_page["offset"], second_page["limit"]) == (3, 1, 100_000)
    assert "subjects" not in nothing["state"]
    assert (nothing["total"], nothing["offset"], nothing["limit"]) == (0, 0, 0)


# How requests are read


@pytest.mark.parametrize("body", ["", "{}", " {} ", "\n{ }"])
def test_delete_takes_an_empty_request(js: JetStream, body: str) -> None:
    assert js.error("STREAM.DELETE.NONE", body) == NOT_FOUND


@pytest.mark.parametrize("body", ["x", " ", "null", "[]", '{"a":1}', "{x}"])
def test_delete_refuses_a_request_with_contents(js: JetStream, body: str) -> None:
    assert js.error("STREAM.DELETE.NONE", body) == NOT_EMPTY


@pytest.mark.parametrize("endpoint", ["STREAM.MSG.GET.NONE", "STREAM.MSG.DELETE.NONE"])
@pytest.mark.parametrize("body", ["", "{}", " {} "])
def test_message_endpoints_need_contents(js: JetStream, endpoint: str, body: str) -> None:
    assert js.error(endpoint, body) == BAD_REQUEST


@pytest.mark.parametrize("body", ["garbage", "12", '"text"', "null", "  "])
@pytest.mark.parametrize("endpoint", ["STREAM.INFO", "STREAM.PURGE"])
def test_body_that_is_no_object_is_no_body(js: JetStream, stream: str, endpoint: str, body: str) -> None:
    js.create(stream)

    assert "error" not in js.api(f"{endpoint}.{stream}", body)


@pytest.mark.parametrize("body", ["{x", "[]", "[1]", " [", '{"unknown":1}', '{"offset":1.5}', '{"offset":', "{"])
@pytest.mark.parametrize("endpoint", ["STREAM.NAMES", "STREAM.LIST", "STREAM.INFO.NONE"])
def test_body_that_begins_as_an_object_must_be_one(js: JetStream, endpoint: str, body: str) -> None:
    assert js.error(endpoint, body)[:2] == (400, INVALID_JSON)


@pytest.mark.parametrize(
    "endpoint", ["STREAM.CREATE.NONE", "STREAM.UPDATE.NONE", "STREAM.MSG.GET.NONE", "STREAM.MSG.DELETE.NONE"]
)
@pytest.mark.parametrize("body", ["garbage", "12", "[]", '{"unknown":1}', "{"])
def test_endpoints_that_need_a_body_need_an_object(js: JetStream, endpoint: str, body: str) -> None:
    assert js.error(endpoint, body)[:2] == (400, INVALID_JSON)


def test_unknown_field_is_named(js: JetStream) -> None:
    assert js.error("STREAM.NAMES", {"unknown": 1})[2] == 'invalid JSON: json: unknown field "unknown"'


def test_case_of_keys_does_not_matter_and_null_is_absent(js: JetStream, stream: str) -> None:
    body = {"NAME": stream, "Subjects": [f"{stream}.x"], "max_msgs": None, "mirror": None, "MAX_Bytes": 1000}

    config = js.api(f"STREAM.CREATE.{stream}", body)["config"]

    assert (config["name"], config["subjects"], config["max_msgs"]) == (stream, [f"{stream}.x"], -1)
    assert config["max_bytes"] == 1000


# Silence and absence


@pytest.mark.parametrize(
    "endpoint",
    [
        "NONE",
        "STREAM.NONE",
        "STREAM.INFO",
        "STREAM.INFO.A.B",
        "STREAM.NAMES.A",
        "STREAM.TEMPLATE.CREATE.A",
        "stream.info.A",
        "META.LEADER.STEPDOWN",
        "META.RESCUE",
        "SERVER.REMOVE",
        "SERVER.EVACUATE",
        "ACCOUNT.STREAM.MOVE.A.B",
        "ACCOUNT.STREAM.CANCEL_MOVE.A.B",
        "ACCOUNT.PURGE.A",
    ],
)
def test_unknown_endpoint_is_not_answered(js: JetStream, endpoint: str) -> None:
    assert js.is_silent(endpoint)


@pytest.mark.parametrize(
    "subject",
    ["$JS.API", "$JS.NONE.API.INFO", f"{API}DIRECT.GET.NONE", f"{API}DIRECT.GET.NONE.a", f"{API}CONSUMER.MSG.NEXT.A.b"],
)
def test_subject_outside_of_the_interface_has_no_responders(js: JetStream, subject: str) -> None:
    assert js.request(subject).headers == f"NATS/1.0 503\r\nNats-Subject: {subject}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        ("STREAM.LEADER.STEPDOWN.NONE", "stream_leader_stepdown_response"),
        ("STREAM.PEER.REMOVE.NONE", "stream_remove_peer_response"),
        ("STREAM.PEER.EVACUATE.NONE", "stream_evacuate_peer_response"),
        ("STREAM.CANCEL_MOVE.NONE", "stream_cancel_move_response"),
    ],
)
@pytest.mark.parametrize("body", ["", "{x", '{"peer":"x"}'])
def test_endpoint_of_clusters_says_that_it_needs_one(js: JetStream, endpoint: str, kind: str, body: str) -> None:
    assert js.api(endpoint, body) == with_type(kind, error=error(NEEDS_CLUSTER))


@pytest.mark.parametrize("level", ["6", "x", "5.0", "99999999999999999999"])
def test_api_level_above_the_servers_is_refused_before_all_else(js: JetStream, level: str) -> None:
    assert js.error("STREAM.INFO.NONE", "{x", {"Nats-Required-Api-Level": level}) == API_LEVEL


@pytest.mark.parametrize(
    "headers",
    [
        {"Nats-Required-Api-Level": "5"},
        {"Nats-Required-Api-Level": ""},
        {"Nats-Required-Api-Level": "-1"},
        {"nats-required-api-level": "6"},
    ],
)
def test_api_level_of_the_server_is_fine(js: JetStream, headers: Headers) -> None:
    assert "error" not in js.api("STREAM.NAMES", None, headers)


# Names and configurations


@pytest.mark.parametrize("name", ["a/b", "a\\b"])
def test_path_separator_in_a_name_is_refused(js: JetStream, name: str) -> None:
    refused = js.error(f"STREAM.CREATE.{name}", {"name": name})

    assert refused == (400, 10128, "Stream name can not contain path separators")


def test_name_has_at_most_255_bytes(js: JetStream, stream: str) -> None:
    longest = stream + "x" * (255 - len(stream))

    assert js.create(longest)["config"]["name"] == longest
    assert js.create_error(longest + "x") == (500, 10052, "stream name is too long, maximum allowed is 255")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"description": "x" * 4097}, (500, 10052, "stream description is too long, maximum allowed is 4096")),
        ({"metadata": {"a": "x" * 131072}}, (500, 10052, "stream metadata exceeds maximum size of 131072 bytes")),
        ({"num_replicas": 6}, (500, 10052, "maximum replicas is 5")),
        ({"num_replicas": -1}, (400, 10133, "replicas count cannot be negative")),
        ({"num_replicas": 2}, (500, 10074, "replicas > 1 not supported in non-clustered mode")),
        ({"max_age": -1}, (500, 10052, "max age can not be negative")),
        ({"max_age": 99_999_999}, (500, 10052, "max age needs to be >= 100ms")),
        ({"duplicate_window": -1}, (500, 10052, "duplicates window can not be negative")),
        ({"duplicate_window": 1}, (500, 10052, "duplicates window needs to be >= 100ms")),
        (
            {"duplicate_window": 2 * SECOND_NS, "max_age": SECOND_NS},
            (500, 10052, "duplicates window can not be larger then max age"),
        ),
        ({"deny_purge": True, "allow_rollup_hdrs": True}, (500, 10052, "roll-ups require the purge permission")),
        (
            {"discard_new_per_subject": True},
            (500, 10052, "discard new per subject requires discard new policy to be set"),
        ),
        (
            {"discard_new_per_subject": True, "discard": "new"},
            (500, 10052, "discard new per subject requires max msgs per subject > 0"),
        ),
        ({"sealed": True}, (500, 10052, "stream configuration for create can not be sealed")),
        ({"mirror_direct": True}, (500, 10052, "stream has no mirror but does have mirror direct")),
        ({"subjects": ["a..b"]}, (500, 10052, "invalid subject")),
        ({"subjects": ["a.*", "a.b"]}, (500, 10052, 'subject "a.*" overlaps with "a.b"')),
        ({"subjects": [">"]}, (500, 10052, "capturing all subjects requires no-ack to be true")),
        (
            {"subjects": ["*.q"]},
            (500, 10052, "subjects that overlap with jetstream api require no-ack to be true"),
        ),
        ({"subjects": ["$SYS.>"]}, (500, 10052, "subjects that overlap with system api require no-ack to be true")),
        ({"placement": {"preferred": "x"}}, (500, 10052, "preferred server not permitted in placement")),
        (
            {"persist_mode": "async", "storage": "memory"},
            (500, 10052, "async persist mode is only supported on file storage"),
        ),
    ],
)
def test_configuration_is_refused(
    js: JetStream, stream: str, config: dict[str, Any], expected: tuple[int, int, str]
) -> None:
    assert js.create_error(stream, **config) == expected


def test_metadata_is_limited_together_with_what_the_server_adds(js: JetStream, stream: str) -> None:
    bytes_max = 131072 - len("_nats.req.level" + "0")

    assert js.create_error(stream, metadata={"a": "x" * bytes_max})[1] == 10052
    js.create(stream, metadata={"a": "x" * (bytes_max - 1)})


@pytest.mark.parametrize(
    "config",
    [
        {"retention": "Limits"},
        {"retention": ""},
        {"discard": "x"},
        {"storage": ""},
        {"compression": ""},
        {"persist_mode": "x"},
        {"max_age": 1e9},
        {"max_age": "1s"},
        {"template_owner": "x"},
    ],
)
def test_value_of_another_kind_is_invalid_json(js: JetStream, stream: str, config: dict[str, Any]) -> None:
    assert js.create_error(stream, **config)[:2] == (400, INVALID_JSON)


@pytest.mark.parametrize("field", ["max_consumers", "max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size"])
def test_limit_that_is_none_becomes_minus_one_unless_pedantic(js: JetStream, stream: str, field: str) -> None:
    pedantic = js.create_error(stream, **{field: -2}, pedantic=True)

    assert pedantic == (400, 10157, f"pedantic mode: {field} must be set to -1")
    assert js.create(stream, **{field: -2})["config"][field] == -1
    assert js.create(f"{stream}-0", **{field: 0})["config"][field] == -1


def test_duplicate_window_is_not_longer_than_the_age(js: JetStream, stream: str) -> None:
    pedantic = js.create_error(stream, max_age=SECOND_NS, pedantic=True)

    assert pedantic == (400, 10157, "pedantic mode: duplicate window cannot be bigger than max age")
    assert js.create(stream, max_age=SECOND_NS)["config"]["duplicate_window"] == SECOND_NS


@pytest.mark.parametrize(
    ("config", "level"),
    [
        ({}, "0"),
        ({"allow_msg_ttl": True}, "1"),
        ({"subject_delete_marker_ttl": SECOND_NS}, "1"),
        ({"allow_msg_counter": True}, "2"),
        ({"allow_atomic": True}, "2"),
        ({"allow_msg_schedules": True}, "2"),
        ({"persist_mode": "async"}, "2"),
        ({"allow_batched": True}, "4"),
    ],
)
def test_metadata_tells_the_level_a_configuration_needs(
    js: JetStream, stream: str, config: dict[str, Any], level: str
) -> None:
    metadata = {"_nats.ver": "1", "_nats.req.level": "9", "_nats.x": "y", "a": "b"}

    answer = js.create(stream, **config, metadata=metadata)

    expected = {**VERSION_METADATA, "_nats.req.level": level, "_nats.x": "y", "a": "b"}
    assert normal(answer["config"]["metadata"]) == expected


def test_subjects_of_another_stream_are_refused(js: JetStream, stream: str) -> None:
    js.create(stream)

    refused = js.create_error(f"{stream}-2", subjects=[f"{stream}.a"])

    assert refused == (400, 10065, "subjects overlap with an existing stream")


@pytest.mark.parametrize(
    ("config", "change", "expected"),
    [
        ({}, {"storage": "memory"}, "stream configuration update can not change storage type"),
        (
            {},
            {"retention": "workqueue"},
            "stream configuration update can not change retention policy to/from workqueue",
        ),
        (
            {"deny_delete": True},
            {"deny_delete": False},
            "stream configuration update can not cancel deny message deletes",
        ),
        ({"deny_purge": True}, {"deny_purge": False}, "stream configuration update can not cancel deny purge"),
        ({"allow_msg_ttl": True}, {"allow_msg_ttl": False}, "message TTL status can not be disabled"),
        ({"allow_msg_schedules": True}, {"allow_msg_schedules": False}, "message schedules can not be disabled"),
        ({}, {"allow_msg_counter": True}, "stream configuration update can not change message counter setting"),
        ({}, {"persist_mode": "async"}, "stream configuration update can not change persist mode"),
    ],
)
def test_update_that_is_not_possible_is_refused(
    js: JetStream, stream: str, config: dict[str, Any], change: dict[str, Any], expected: str
) -> None:
    js.create(stream, **config)
    before = js.config(stream)

    answer = js.try_update(stream, **change)

    assert answer == with_type("stream_update_response", error=error((500, 10052, expected)))
    assert js.config(stream) == before
