"""Where values are, and what is wrong with texts that are none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.wire.json_syntax import (
    DEPTH_MAX,
    JsonSyntaxError,
    end_of_value,
    items_at,
    kind_at,
    members_at,
    quoted_bytes,
    text_at,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


def read(data: bytes, start: int, end: int) -> object:
    """Read a value through the functions under test alone."""
    kind = kind_at(data, start)
    if kind == "object":
        return {key: read(data, first, last) for key, first, last in members_at(data, start)}
    if kind == "array":
        return [read(data, first, last) for first, last in items_at(data, start)]
    return text_at(data, start, end) if kind == "string" else json.loads(data[start:end])


@given(value=VALUES, indent=st.sampled_from([None, 0, 2]), is_ascii=st.booleans())
def test_any_value_is_found_whole_and_read_back(value, indent, is_ascii):
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()

    assert end_of_value(data + b" ,", 0) == len(data)
    assert read(data, 0, len(data)) == value


@given(data=st.binary() | st.text(alphabet='{}[]",:\\u0e-.1ntrualsef \n').map(str.encode))
def test_any_bytes_are_a_value_or_refused(data):
    try:
        position: int | None = end_of_value(data, 0)
    except JsonSyntaxError as error:
        position = error.offset

    assert position is None or 0 < position <= len(data)


@pytest.mark.parametrize(
    ("data", "text", "offset"),
    [
        (b"x", "invalid character 'x' looking for beginning of value", 1),
        (b"'", "invalid character '\\'' looking for beginning of value", 1),
        (b"\xff", "invalid character '\\xff' looking for beginning of value", 1),
        (b"[1,]", "invalid character ']' looking for beginning of value", 4),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string", 2),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string", 8),
        (b'{"a" 1}', "invalid character '1' after object key", 6),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair", 8),
        (b"[1 2]", "invalid character '2' after array element", 4),
        (b"[trux]", "invalid character 'x' in literal true (expecting 'e')", 5),
        (b"[-x]", "invalid character 'x' in numeric literal", 3),
        (b"[1.]", "invalid character ']' in numeric literal", 4),
        (b'"\n"', "invalid character '\\n' in string", 2),
        (b'"\\x"', "invalid escape sequence `\\x` in string", 3),
        (b'"\\u12zz"', "invalid escape sequence `\\u12zz` in string", 7),
        (b'"\\ "', 'invalid escape sequence "\\\\ " in string', 3),
        (b'"abc', "unexpected EOF", None),
        (b'{"a":', "unexpected EOF", None),
        (b"tr", "unexpected EOF", None),
        (b"1e", "unexpected EOF", None),
        (b'"\\u12', "unexpected EOF", None),
    ],
)
def test_complaint_names_the_first_wrong_character(data, text, offset):
    with pytest.raises(JsonSyntaxError) as raised:
        end_of_value(data, 0)

    assert (raised.value.text, raised.value.offset) == (text, offset)


def test_nesting_has_a_bound():
    deepest = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX

    assert end_of_value(deepest, 0) == len(deepest)
    with pytest.raises(JsonSyntaxError, match="exceeded max depth"):
        end_of_value(b"[" + deepest + b"]", 0)


@pytest.mark.parametrize(
    "data",
    [b"[" + b"1," * 500_000 + b"1]", b"[" + b"[]," * 300_000 + b"[]]", b'"' + b"\\u0041" * 150_000 + b'"'],
    ids=["numbers", "lists", "escapes"],
)
def test_megabyte_is_passed_before_the_time_out(data):
    assert end_of_value(data, 0) == len(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'"a\xffb"', "a\ufffdb"),
        (b'"\xe2\x82"', "\ufffd\ufffd"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\ude00\\ud83dx"', "\ufffd\ufffdx"),
        (b'"\\u00e9\\n\\/\\""', 'é\n/"'),
    ],
)
def test_what_is_no_unicode_is_replaced(data, text):
    assert text_at(data, 0, len(data)) == text


def test_bytes_are_quoted_one_by_one_where_they_cannot_be_read():
    assert quoted_bytes(b'"\xff\xc3\xa9\n\\') == '"\\"\\xffé\\n\\\\"'
