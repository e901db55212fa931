"""JSON as values with lines."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.errors import ConfigurationError
from jetlake.iac.json_text import read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=50, deadline=None)
@given(VALUES, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_means_what_json_means(value, indent, ascii_only):
    document = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert read_json(document, "f")[0].plain() == value


def test_every_value_knows_its_line():
    (document,) = read_json('{\n "a": [1,\n  {"b":\n 2}]\n}\n', "f.json")

    inner = document.mapping["a"].items[1].mapping["b"]
    assert (inner.value, str(inner.location)) == (2, "f.json:3")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 01}',
        "[" * 10_000,
        "9" * 5_000,
        '{"a": 1, "a": 2}',
        '"\x01"',
        "[1] 2",
        '["A\\ud800"]',
        '{"A\\ud800": 1}',
    ],
)
def test_bad_json_is_refused(text):
    with pytest.raises(ConfigurationError, match=r"^f"):
        read_json(text, "f")
