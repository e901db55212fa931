"""Where a query stands."""

import json

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.offsets import Offset, StreamPosition


def test_the_same_place_is_always_the_same_text():
    one = Offset({"B": StreamPosition("t", 2), "A": StreamPosition("u", 1, 3)})
    other = Offset({"A": StreamPosition("u", 1, 3), "B": StreamPosition("t", 2)})

    assert json.dumps(one.to_json()) == json.dumps(other.to_json())
    assert json.dumps(one.to_json()) == (
        '{"streams": {"A": {"created": "u", "next": 1, "parts": 3}, '
        '"B": {"created": "t", "next": 2, "parts": 1}}, "v": 1}'
    )


def test_what_spark_keeps_is_read_again():
    offset = Offset({"A": StreamPosition("u", 12, 2)})

    assert Offset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        ({"v": 2, "streams": {}}, "version 2"),
        ({"partition": 1}, "version None"),
        ({"v": 1}, "not one of Jetlake"),
        ({"v": 1, "streams": {"A": {"next": "x"}}}, "not one of Jetlake"),
    ],
)
def test_offsets_of_others_are_refused(kept, says):
    with pytest.raises(ConfigurationError, match=says):
        Offset.from_json(kept)
