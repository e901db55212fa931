"""Requests from bytes, answers to bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.streams.config import STREAM_CONFIG_REQUEST, StreamConfigRequest, StreamSource
from jetlake.management.wire import json_dialect
from jetlake.management.wire.error_codes import ErrorCode
from jetlake.management.wire.error_codes import RequestError as ApiError
from jetlake.management.wire.json_dialect import read_request, write_json


def read(body: bytes) -> StreamConfigRequest:
    value = read_request(STREAM_CONFIG_REQUEST, body).value
    assert isinstance(value, StreamConfigRequest)
    return value


def problem_of(body: bytes, *, is_strict: bool = True) -> str:
    with pytest.raises(ApiError) as raised:
        read_request(STREAM_CONFIG_REQUEST, body, is_strict=is_strict)
    assert raised.value.code is ErrorCode.INVALID_JSON
    return raised.value.description.removeprefix("invalid JSON: ")


@pytest.mark.parametrize("body", [b"", b"  \n", b"{}", b"null", b"{}{}", b'{"name":null,"subjects":null}'])
def test_request_that_says_nothing_is_all_zeros(body):
    assert read(body) == StreamConfigRequest()


@pytest.mark.parametrize("key", ["max_msgs", "MAX_MSGS", "Max_Msgs", "max_m\\u017fgs", "\\u006dax_msgs"])
def test_key_is_known_in_any_case(key):
    assert read(f'{{"{key}":5}}'.encode()).max_msgs == 5


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1.5", "number 1.5"),
        ("1.0", "number 1.0"),
        ("1e2", "number 1e2"),
        ("1e400", "number 1e400"),
        ("9223372036854775808", "number 9223372036854775808"),
        ('"1"', "string"),
        ("true", "bool"),
        ("[1]", "array"),
        ("{}", "object"),
    ],
)
def test_number_must_be_whole_and_fit(value, kind):
    expected = f"json: cannot unmarshal {kind} into Go struct field StreamConfigRequest.max_msgs of type int64"

    assert problem_of(f'{{"max_msgs":{value}}}'.encode()) == expected


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"subjects":["a",5]}', "StreamConfigRequest.subjects.1 of type string"),
        (b'{"mirror":{"NAME":5}}', "Go struct field StreamConfigRequest.mirror.NAME of type string"),
        (b'{"sources":[{"external":5}]}', "sources.0.external of type server.ExternalStream"),
        (b'{"metadata":{"a/b":5}}', "Go struct field StreamConfigRequest.metadata.a~1b of type string"),
        (b"5", "Go value of type server.StreamConfigRequest"),
    ],
)
def test_complaint_says_where(body, where):
    assert problem_of(body).endswith(where)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"retention":"x","max_msgs":"x"}', 'can not unmarshal "\\"x\\""'),
        (b'{"x":1,"retention":"x"}', 'json: unknown field "x"'),
        (b'{"x":1,"retention":"x"', "unexpected EOF"),
        (b'{"x":1}{"retention":"x"', 'json: unknown field "x"'),
        (b'{"compression":"x"}', "unknown compression algorithm"),
        (b'{"compression":[]}', "json: cannot unmarshal array into Go value of type string"),
        (b'{"name":"S",}', "invalid character '}' looking for beginning of object key string at offset 13"),
    ],
)
def test_first_mistake_is_told_and_syntax_before_all_others(body, problem):
    assert problem_of(body) == problem


def test_key_that_stands_twice_is_read_onto_what_is_there():
    request = read(
        b'{"mirror":{"name":"A","filter_subject":"x"},"subjects":["a","b"],"metadata":{"a":"1"},"max_msgs":5}'
        b'{"mirror":{"name":"B"},"subjects":[null,"c"],"metadata":{"b":"2"},"max_msgs":null}'
    )

    assert request.mirror == StreamSource(name="B", filter_subject="x")
    assert request.subjects == ("a", "c")
    assert request.metadata == {"a": "1", "b": "2"}
    assert request.max_msgs == 5


def test_server_that_is_not_strict_collects_unknown_keys():
    request = read_request(STREAM_CONFIG_REQUEST, b'{"x":1,"name":"S","mirror":{"y":[{}]}}', is_strict=False)

    assert request.unknown_keys == ("x", "y")
    assert request.value.name == "S"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"x":1}{}', "invalid character '{' after top-level value"),
        (b'{"x":1', "unexpected end of JSON input"),
        (
            b'{"x":1,"no_ack":5}',
            "json: cannot unmarshal number into Go struct field StreamConfigRequest.no_ack of type bool",
        ),
    ],
)
def test_server_that_is_not_strict_still_refuses_what_it_cannot_read(body, problem):
    assert problem_of(body, is_strict=False) == problem


@given(
    body=st.binary()
    | st.text(alphabet='{}[]",:\\u0e-.1ntrualsef').map(str.encode)
    | st.builds(
        lambda key, value: f'{{"name":"S","{key}":{value}}}'.encode(),
        st.sampled_from([field.key for field in STREAM_CONFIG_REQUEST.fields]),
        st.sampled_from(["-1", "2147483648", "1e400", '"1"', "null", "[]", "[{}]", '[{"name":[]}]', '{"src":{}}']),
    ),
    is_strict=st.booleans(),
)
def test_any_body_is_read_or_refused(body, is_strict):
    try:
        request = read_request(STREAM_CONFIG_REQUEST, body, is_strict=is_strict)
    except ApiError as error:
        code = error.code
    else:
        assert isinstance(request.value, StreamConfigRequest)
        return

    assert code is ErrorCode.INVALID_JSON


def test_answer_is_written_without_spaces_and_safe_in_a_web_page():
    assert write_json({"b": ["<a.>", "é&\u2028\n\x7f"], "a": None}) == (
        '{"b":["\\u003ca.\\u003e","é\\u0026\\u2028\\n\x7f"],"a":null}'.encode()
    )


WORDS = st.sampled_from(["name", "NAME", "S", "file", "File", "all", "2025-01-01T00:00:00Z", "", "é", "a.b", "s2"])
NUMBERS = st.sampled_from([0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 1.0, 1.5, 1e300])
KEYS = st.sampled_from([field.key for field in STREAM_CONFIG_REQUEST.fields] + ["Name", "unknown", "api_prefix"])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6), st.sampled_from(["", "-0", "twice", "NaN", " x", "\\u0041"]))
def test_what_is_taken_plainly_is_what_would_be_read(value, spoiled):
    body = write_json(value).decode()
    spoilers = {
        "": body,
        "-0": body.replace("0", "-0"),
        "NaN": body.replace("1", "NaN"),
        "twice": body.replace("}", ',"name":"x"}', 1),
    }
    body = spoilers.get(spoiled, body + spoiled)

    taken = json_dialect._read_plain(STREAM_CONFIG_REQUEST, body.encode())

    if taken is not None:
        assert taken == json_dialect._read_values(STREAM_CONFIG_REQUEST, body.encode())


def test_requests_of_clients_are_taken_plainly():
    body = b'{"name":"S","subjects":["a.>"],"max_age":5,"metadata":{"a":"b"},"mirror":{"name":"M"},"storage":"memory"}'

    taken = json_dialect._read_plain(STREAM_CONFIG_REQUEST, body)

    assert taken == json_dialect._read_values(STREAM_CONFIG_REQUEST, body)
