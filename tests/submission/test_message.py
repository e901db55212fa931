"""Files of a spool: Choria's format read and written, and what cannot be a message."""

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.client.timestamps import read_time, write_time
from jetlake.errors import ConfigurationError
from jetlake.submission.message import SpoolMessage, check, decode, encode

CHORIA = {
    "id": "ea890b5c-0000-4000-8000-000000000000",
    "subject": "myapp.metrics",
    "payload": "eyJjbnQiOjF9Cg==",
    "reliable": True,
    "priority": 4,
    "created": "2021-07-11T08:22:52.906612419Z",
    "ttl": 86400,
    "max_tries": 100,
    "tries": 0,
    "next_try": "0001-01-01T00:00:00Z",
    "sender": "myapp.production",
    "identity": "dev1.example.net",
    "sign": False,
    "headers": None,
}


def message(**fields):
    given = {"id": "1", "subject": "a.b", "payload": b"x", "created_ns": time.time_ns(), "sender": "test"}
    return SpoolMessage(**{**given, **fields})


def test_a_file_of_choria_is_read_and_written_the_same():
    read = decode(json.dumps(CHORIA).encode())

    assert read.payload == b'{"cnt":1}\n'
    assert (read.created_ns, read.next_try_ns, read.ttl_s) == (1625991772906612419, 0, 86400.0)
    assert json.loads(encode(read)) == CHORIA


def test_a_file_of_the_first_release_has_neither_signature_nor_headers():
    old = {key: value for key, value in CHORIA.items() if key not in ("sign", "headers")}

    assert decode(json.dumps(old).encode()) == decode(json.dumps(CHORIA).encode())


def test_other_zones_and_parts_of_seconds_are_read():
    text = json.dumps({**CHORIA, "created": "2021-07-11T10:22:52.5+02:00", "ttl": 1.5})

    read = decode(text.encode())

    assert read.created_ns == 1625991772500000000
    assert read.expires_ns == 1625991774000000000


@pytest.mark.parametrize(
    "change",
    [
        {"payload": "not base64!"},
        {"created": "yesterday"},
        {"created": "2021-13-41T08:22:52Z"},
        {"subject": 5},
        {"headers": ["a"]},
        {"ttl": "1h"},
    ],
)
def test_a_file_that_is_no_message_says_why(change):
    with pytest.raises(ConfigurationError, match="the file is not a message: "):
        decode(json.dumps({**CHORIA, **change}).encode())


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"{}"])
def test_what_is_no_object_is_no_message(content):
    with pytest.raises(ConfigurationError):
        decode(content)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"subject": ""}, "subject is ''"),
        ({"subject": "a..b"}, "without blanks and wildcards"),
        ({"subject": "a.*"}, "without blanks and wildcards"),
        ({"subject": "a.>"}, "without blanks and wildcards"),
        ({"subject": "a b"}, "without blanks and wildcards"),
        ({"subject": "a\r\nPUB x"}, "without blanks and wildcards"),
        ({"subject": "a" * 600}, "at most 512"),
        ({"payload": b""}, "payload is empty"),
        ({"payload": bytes(1_048_576)}, "payload has more than"),
        ({"priority": 5}, "priority is 5"),
        ({"priority": -1}, "priority is -1"),
        ({"created_ns": 0}, "created is not set"),
        ({"ttl_s": 0.0}, "ttl is 0 s"),
        ({"ttl_s": 32 * 86400.0}, "at most 31 days"),
        ({"max_tries": 0}, "max_tries is 0"),
        ({"sender": ""}, "sender is ''"),
        ({"sender": "a\nb"}, "sender is"),
        ({"id": "../../etc/passwd"}, "id is"),
        ({"headers": {"Nats-Msg-Id": "x"}}, "is reserved"),
        ({"headers": {"CHORIA-Sender": "x"}}, "is reserved"),
        ({"headers": {"a:b": "x"}}, "cannot name a header"),
        ({"headers": {"a": "x\r\ny: z"}}, "a line break"),
        ({"headers": {"a": "x" * 9000}}, "at most 8,192"),
        ({"created_ns": 1}, "message has expired"),
    ],
)
def test_what_cannot_be_delivered_is_refused_with_the_reason(fields, reason):
    with pytest.raises(ConfigurationError, match=reason):
        check(message(**fields))


def test_a_good_message_is_good():
    check(message(headers={"X-Trace": "abc\tdef", "content-type": "application/json"}, sender="vm Task Agent"))


@given(
    payload=st.binary(min_size=1, max_size=200),
    sender=st.text(min_size=1, max_size=40),
    headers=st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=4),
    created_ns=st.integers(1, 2**62),
)
def test_what_is_written_is_read_again(payload, sender, headers, created_ns):
    written = message(payload=payload, sender=sender, headers=headers, created_ns=created_ns)

    assert decode(encode(written)) == written


@given(content=st.binary(max_size=300))
def test_no_file_breaks_the_reader(content):
    try:
        check(decode(content))
    except ConfigurationError:
        return


@given(
    st.fixed_dictionaries(
        {},
        optional={
            key: st.one_of(st.none(), st.text(max_size=20), st.integers(), st.floats(allow_nan=False), st.booleans())
            for key in CHORIA
        },
    )
)
def test_no_object_breaks_the_check(change):
    try:
        check(decode(msgspec.json.encode({**CHORIA, **change})))
    except ConfigurationError:
        return


@given(st.integers(1, 2**62))
def test_a_time_is_the_same_after_writing_and_reading(unix_ns):
    assert read_time(write_time(unix_ns)) == unix_ns
