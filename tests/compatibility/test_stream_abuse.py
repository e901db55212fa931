"""Requests nobody should send: numbers out of range, values of another kind, and JSON at the edge of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import API, JetStream, start_jetstream_server
from tests.compatibility.server_process import ServerProcess

js, stream = jetstream.js, jetstream.stream

INVALID_JSON = 10025
NAME_DIFFERS = 10056

DEFAULT_WINDOW = 120_000_000_000

# No integer of any width: every field refuses these.
NO_INTEGERS = ["1e400", "1.0", "1e2", '"1"', "true", "[]", "{}", "18446744073709551616"]

# What becomes of a number in a field: the value that is shown then (None when the field is left out), or the refusal.
NUMBERS = ["-1", "0", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "null"]
TWO_31 = 2**31
TWO_63 = 2**63
REFUSED = "refused"
STREAM_FIELDS: dict[str, list[Any]] = {
    "max_consumers": [-1, -1, TWO_31, TWO_63 - 1, INVALID_JSON, -1, -1],
    "max_msgs": [-1, -1, TWO_31, TWO_63 - 1, INVALID_JSON, -1, -1],
    "max_bytes": [-1, -1, TWO_31, (REFUSED, 10047), INVALID_JSON, -1, -1],
    "max_msgs_per_subject": [-1, -1, TWO_31, TWO_63 - 1, INVALID_JSON, -1, -1],
    "max_msg_size": [-1, -1, INVALID_JSON, INVALID_JSON, INVALID_JSON, INVALID_JSON, -1],
    "max_age": [(REFUSED, 10052), 0, TWO_31, TWO_63 - 1, INVALID_JSON, (REFUSED, 10052), 0],
    "num_replicas": [(REFUSED, 10133), 1, (REFUSED, 10052), (REFUSED, 10052), INVALID_JSON, (REFUSED, 10133), 1],
    "duplicate_window": [
        (REFUSED, 10052),
        DEFAULT_WINDOW,
        TWO_31,
        TWO_63 - 1,
        INVALID_JSON,
        (REFUSED, 10052),
        DEFAULT_WINDOW,
    ],
    "first_seq": [INVALID_JSON, None, TWO_31, TWO_63 - 1, TWO_63, INVALID_JSON, None],
    "subject_delete_marker_ttl": [(REFUSED, 10052), None, TWO_31, TWO_63 - 1, INVALID_JSON, (REFUSED, 10052), None],
    "consumer_limits.max_ack_pending": [-1, None, TWO_31, TWO_63 - 1, INVALID_JSON, -TWO_63, None],
    "consumer_limits.inactive_threshold": [-1, None, TWO_31, TWO_63 - 1, INVALID_JSON, -TWO_63, None],
    "sources.opt_start_seq": [INVALID_JSON, None, TWO_31, TWO_63 - 1, TWO_63, INVALID_JSON, None],
}

# The error codes of the same numbers in requests about messages and lists, 0 for none.
REQUEST_FIELDS: dict[tuple[str, str], list[int]] = {
    ("STREAM.NAMES", "offset"): [0, 0, 0, 0, INVALID_JSON, 0, 0],
    ("STREAM.LIST", "offset"): [0, 0, 0, 0, INVALID_JSON, 0, 0],
    ("STREAM.INFO.~", "offset"): [0, 0, 0, 0, INVALID_JSON, 0, 0],
    ("STREAM.MSG.GET.~", "seq"): [INVALID_JSON, 10003, 10037, 10037, 10037, INVALID_JSON, 10003],
    ("STREAM.MSG.GET.~", "batch"): [10003, 10003, 10003, 10003, INVALID_JSON, 10003, 10003],
    ("STREAM.MSG.GET.~", "up_to_seq"): [INVALID_JSON, 10003, 10003, 10003, 10003, INVALID_JSON, 10003],
    ("STREAM.MSG.DELETE.~", "seq"): [INVALID_JSON, 10057, 10057, 10057, 10057, INVALID_JSON, 10057],
    ("STREAM.PURGE.~", "seq"): [INVALID_JSON, 0, 0, 0, 0, INVALID_JSON, 0],
    ("STREAM.PURGE.~", "keep"): [INVALID_JSON, 0, 0, 0, 0, INVALID_JSON, 0],
}

MALFORMED = "408 Malformed Request"
DIRECT_FIELDS: dict[str, list[str]] = {
    "batch": ["204 EOB", "", "", "", MALFORMED, "204 EOB", ""],
    "max_bytes": ["", "", "", "", MALFORMED, "", ""],
    "up_to_seq": [MALFORMED, "", "", "", "", MALFORMED, ""],
}


@pytest.fixture(scope="module")
def js_server(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose room for streams does not depend on the machine's."""
    folder = tmp_path_factory.mktemp(server_kind)
    process = start_jetstream_server(server_kind, folder, jetstream="max_file: 1TB, max_mem: 1TB")
    yield process
    process.stop()


def create_with(js: JetStream, stream: str, field: str, number: str) -> tuple[int, Any]:
    """Create a stream with one field and return the error code (0 for none) and the value that is shown."""
    outer, _, inner = field.partition(".")
    value = f'{{"{inner}":{number}}}' if inner else number
    if outer == "sources":
        value = f'[{{"name":"NONE","{inner}":{number}}}]'
    answer = js.api(f"STREAM.CREATE.{stream}", f'{{"name":"{stream}","{outer}":{value}}}')
    if "error" in answer:
        return answer["error"]["err_code"], None
    js.api(f"STREAM.DELETE.{stream}")
    shown = answer["config"].get(outer)
    if outer == "sources":
        shown = shown[0]
    return 0, shown.get(inner) if inner else shown


# Numbers


@pytest.mark.parametrize("field", list(STREAM_FIELDS))
def test_number_in_a_configuration_is_taken_or_refused(js: JetStream, stream: str, field: str) -> None:
    outcomes = dict(zip(NUMBERS, STREAM_FIELDS[field], strict=True))
    expected: dict[str, tuple[int, Any]] = {}
    for number, outcome in outcomes.items():
        if isinstance(outcome, tuple):
            expected[number] = (outcome[1], None)
        else:
            expected[number] = (INVALID_JSON, None) if outcome == INVALID_JSON else (0, outcome)

    assert {number: create_with(js, stream, field, number) for number in NUMBERS} == expected


@pytest.mark.parametrize("field", list(STREAM_FIELDS))
def test_what_is_no_integer_is_refused_in_a_configuration(js: JetStream, stream: str, field: str) -> None:
    codes = {number: create_with(js, stream, field, number)[0] for number in NO_INTEGERS}

    assert codes == dict.fromkeys(NO_INTEGERS, INVALID_JSON)


@pytest.mark.parametrize(("endpoint", "field"), list(REQUEST_FIELDS))
def test_number_in_a_request_is_taken_or_refused(js: JetStream, stream: str, endpoint: str, field: str) -> None:
    name = endpoint.replace("~", stream)
    codes = {}
    for number in NUMBERS:
        js.create(stream)
        js.publish(f"{stream}.a")
        codes[number] = js.api(name, f'{{"{field}":{number}}}').get("error", {}).get("err_code", 0)
        js.api(f"STREAM.DELETE.{stream}")

    assert codes == dict(zip(NUMBERS, REQUEST_FIELDS[endpoint, field], strict=True))


@pytest.mark.parametrize(("endpoint", "field"), list(REQUEST_FIELDS))
def test_what_is_no_integer_is_refused_in_a_request(js: JetStream, stream: str, endpoint: str, field: str) -> None:
    js.create(stream)
    name = endpoint.replace("~", stream)

    codes = {number: js.error(name, f'{{"{field}":{number}}}')[1] for number in NO_INTEGERS}

    assert codes == dict.fromkeys(NO_INTEGERS, INVALID_JSON)


@pytest.mark.parametrize("field", list(DIRECT_FIELDS))
def test_number_in_a_direct_request_is_taken_or_malformed(js: JetStream, stream: str, field: str) -> None:
    js.create(stream, allow_direct=True)
    js.publish(f"{stream}.a")

    def status(number: str) -> str:
        return js.request(f"{API}DIRECT.GET.{stream}", f'{{"seq":1,"{field}":{number}}}'.encode()).status

    assert {number: status(number) for number in NUMBERS} == dict(zip(NUMBERS, DIRECT_FIELDS[field], strict=True))
    assert {number: status(number) for number in NO_INTEGERS} == dict.fromkeys(NO_INTEGERS, MALFORMED)


def test_purge_up_to_the_largest_sequence_leaves_the_server_alive(js: JetStream, stream: str) -> None:
    js.create(stream, storage="memory")
    js.publish(f"{stream}.a")

    purged = js.api(f"STREAM.PURGE.{stream}", '{"seq":18446744073709551615}')

    assert purged["purged"] == 1
    state = js.state(stream)
    assert (state["first_seq"], state["last_seq"]) == (2**64 - 1, 2**64 - 2)


# Values of another kind


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ('"name":1', INVALID_JSON),
        ('"name":"~","subjects":"a"', INVALID_JSON),
        ('"name":"~","subjects":[1]', INVALID_JSON),
        ('"name":"~","subjects":[null]', 10052),
        ('"name":"~","subjects":{}', INVALID_JSON),
        ('"name":"~","metadata":{"a":1}', INVALID_JSON),
        ('"name":"~","metadata":{"a":null}', 0),
        ('"name":"~","metadata":[]', INVALID_JSON),
        ('"name":"~","sealed":"true"', INVALID_JSON),
        ('"name":"~","sealed":1', INVALID_JSON),
        ('"name":"~","retention":1', INVALID_JSON),
        ('"name":"~","mirror":[]', INVALID_JSON),
        ('"name":"~","mirror":{"name":1}', INVALID_JSON),
        ('"name":"~","mirror":{"name":"A","unknown":1}', INVALID_JSON),
        ('"name":"~","sources":{}', INVALID_JSON),
        ('"name":"~","sources":[null]', 10141),
        ('"name":"~","consumer_limits":[]', INVALID_JSON),
        ('"name":"~","republish":"x"', INVALID_JSON),
        ('"name":"~","":1', INVALID_JSON),
    ],
)
def test_value_of_another_kind_has_its_error(js: JetStream, stream: str, fields: str, code: int) -> None:
    answer = js.api(f"STREAM.CREATE.{stream}", "{" + fields.replace("~", stream) + "}")

    assert answer.get("error", {}).get("err_code", 0) == code


# JSON at its edge


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"~"} x',
        b'{"name":"~"}\x00',
        b'{"name":"~"}//x',
        b'\xef\xbb\xbf{"name":"~"}',
        b'\x0b{"name":"~"}',
        b"{'name':'~'}",
        b'{"name":"~",}',
        b'{"name":"~","description":"a\x01b"}',
        b'{"name":"~","description":"a\nb"}',
        b'{"name":"~","description":"\\x"}',
        b'{"name":"~","max_msgs":NaN}',
        b'{"name":"~","max_msgs":0x1}',
        b'{"name":"~","max_msgs":01}',
        b'{"name":"~","max_msgs":+1}',
        b'{"name":"~","max_msgs":.5}',
        b'{"name":"~","max_msgs":-}',
        b'{"name":"~","max_msgs"}',
        b'{"name":"~" "max_msgs":1}',
        b'{"name":"~"',
        b'{"name":"~',
        b"nul",
        b"]",
    ],
)
def test_text_that_is_no_json_is_refused(js: JetStream, stream: str, body: bytes) -> None:
    assert js.error(f"STREAM.CREATE.{stream}", body.replace(b"~", stream.encode()))[:2] == (400, INVALID_JSON)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'\t\r\n {\t"name"\n:\r"~" }\n', {}),
        (b'{"n\\u0061me":"~"}', {}),
        (b'{"name":"~","max_msgs":-0}', {"max_msgs": -1}),
        (b'{"name":"~","description":"\xff\xfe"}', {"description": "\ufffd\ufffd"}),
        (b'{"name":"~","description":"\\ud800"}', {"description": "\ufffd"}),
        (b'{"name":"~","description":"\\ud83d\\ude00"}', {"description": "\U0001f600"}),
        (b'{"name":"~","description":"a\\u0000b"}', {"description": "a\x00b"}),
    ],
)
def test_text_that_is_json_is_understood(js: JetStream, stream: str, body: bytes, shown: dict[str, Any]) -> None:
    answer = js.api(f"STREAM.CREATE.{stream}", body.replace(b"~", stream.encode()))

    assert "error" not in answer, answer
    assert answer["config"]["name"] == stream
    assert {key: answer["config"][key] for key in shown} == shown


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('{"name":"~","max_msgs":1,"max_msgs":2}', {"max_msgs": 2}),
        ('{"name":"~","max_msgs":1,"MAX_MSGS":3}', {"max_msgs": 3}),
        ('{"name":"OTHER","name":"~"}', {}),
        ('{"name":"~","subjects":["~.a"],"subjects":["~.b"]}', {"subjects": ["~.b"]}),
        (
            '{"name":"~","consumer_limits":{"max_ack_pending":1},"consumer_limits":{"inactive_threshold":5}}',
            {"consumer_limits": {"max_ack_pending": 1, "inactive_threshold": 5}},
        ),
    ],
)
def test_last_of_two_equal_keys_counts(js: JetStream, stream: str, body: str, shown: dict[str, Any]) -> None:
    config = js.api(f"STREAM.CREATE.{stream}", body.replace("~", stream))["config"]

    expected = json.loads(json.dumps(shown).replace("~", stream))
    assert {key: config[key] for key in expected} == expected


def test_second_object_is_read_on_top_of_the_first(js: JetStream, stream: str) -> None:
    answer = js.api(f"STREAM.CREATE.{stream}", f'{{"name":"{stream}","max_msgs":5}} {{"max_msgs":7,"max_bytes":9}}')

    assert (answer["config"]["max_msgs"], answer["config"]["max_bytes"]) == (7, 9)


@pytest.mark.parametrize("depth", [100, 1000, 9999, 10_000, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("field", ["metadata", "unknown"])
def test_deep_nesting_is_refused(js: JetStream, stream: str, field: str, opening: str, depth: int) -> None:
    closing = "]" if opening == "[" else "}"
    nested = opening * depth + "1" + closing * depth

    refused = js.error(f"STREAM.CREATE.{stream}", f'{{"name":"{stream}","{field}":{nested}}}')

    assert refused[:2] == (400, INVALID_JSON)
    assert js.error("STREAM.NAMES", nested)[:2] == (400, INVALID_JSON)


# Lengths


def test_long_texts_have_their_errors(js: JetStream, stream: str) -> None:
    million = "x" * 1_000_000

    assert js.error(f"STREAM.CREATE.{stream}", {"name": million})[1] == NAME_DIFFERS
    assert js.error(f"STREAM.UPDATE.{stream}", {"name": million})[1] == 10052
    assert js.create_error(stream, description=million)[1] == 10052
    assert js.create_error(stream, metadata={million: ""})[1] == 10052
    assert js.error(f"STREAM.CREATE.{stream}", {"name": stream, million: 1})[1] == INVALID_JSON
    assert js.error(f"STREAM.CREATE.{stream}", " " * 1_000_000)[1] == NAME_DIFFERS
    assert js.api("STREAM.NAMES", {"subject": million})["streams"] is None
    assert js.error(f"STREAM.INFO.{'y' * 3000}") == (404, 10059, "stream not found")


def test_stream_may_have_a_long_subject(js: JetStream, stream: str) -> None:
    subject = f"{stream}." + "x" * 3000

    js.create(stream, subjects=[subject])

    assert js.publish(subject) == {"stream": stream, "seq": 1}
    assert js.get(stream, last_by_subj=subject)["seq"] == 1


def test_stream_may_have_many_subjects(js: JetStream, stream: str) -> None:
    subjects = [f"{stream}.{number}" for number in range(2000)]

    js.create(stream, subjects=subjects)

    assert js.config(stream)["subjects"] == subjects
    assert js.publish(subjects[1999])["seq"] == 1


# Names


@pytest.mark.parametrize("name", ["a b", "a.b", "a*", "a>", "", "\u2028"])
def test_name_other_than_in_the_subject_is_refused(js: JetStream, stream: str, name: str) -> None:
    assert js.error(f"STREAM.CREATE.{stream}", {"name": name})[1] == NAME_DIFFERS


@pytest.mark.parametrize("name", ["\u00e4\u6f22", "a$b", "a{b", "-", "%00"])
def test_name_may_have_signs_of_all_kinds(js: JetStream, stream: str, name: str) -> None:
    full_name = f"{stream}{name}"

    created = js.api(f"STREAM.CREATE.{full_name}", {"name": full_name, "subjects": [f"{stream}.>"]})

    assert created["config"]["name"] == full_name
    assert js.publish(f"{stream}.a") == {"stream": full_name, "seq": 1}
    assert "error" not in js.api(f"STREAM.DELETE.{full_name}")
