"""Payloads that are JSON, as columns."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.spark.decoding import decode_json, parse_all, parse_each
from jetlake.spark.variant import VariantEncoder

pa = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

PERSON = pa.struct([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=80) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=12), inner, max_size=6),
    max_leaves=30,
)


def payloads(*values):
    return pa.array(values, pa.binary())


def test_all_payloads_of_a_batch_are_parsed_at_once():
    column = payloads(b'{"id": 1, "name": "Ada", "tags": ["x"]}', b'{"name": "Bob", "more": {"a": 1}}')

    parsed = parse_all(column, PERSON)

    assert parsed.to_pylist() == [
        {"id": 1, "name": "Ada", "tags": ["x"]},
        {"id": None, "name": "Bob", "tags": None},
    ]
    assert parsed.to_pylist() == parse_each(column, PERSON).to_pylist()


def test_one_bad_payload_spoils_no_other():
    field = pa.field("value", PERSON)

    decoded = decode_json(payloads(b'{"id": 1}', b"{", None, b"", b"[1]", b'{\n"id": 2\n}'), field)

    assert [row and row["id"] for row in decoded.to_pylist()] == [1, None, None, None, None, 2]
    assert decoded.is_valid().to_pylist() == [True, False, False, False, False, True]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.int32(), "5", 5),
        (pa.int32(), "5.0", 5),
        (pa.int32(), "5.5", None),
        (pa.int8(), "300", None),
        (pa.float64(), "5", 5.0),
        (pa.float64(), '"5"', None),
        (pa.string(), '{"a": [1]}', '{"a":[1]}'),
        (pa.bool_(), "true", True),
        (pa.bool_(), "1", None),
        (pa.decimal128(6, 2), "12.345", Decimal("12.34")),
        (pa.decimal128(4, 2), "12345", None),
        (pa.timestamp("us", "UTC"), '"2026-01-31T12:00:00Z"', datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (pa.timestamp("us", "UTC"), '"soon"', None),
        (pa.date32(), '"2026-01-31"', date(2026, 1, 31)),
        (pa.map_(pa.string(), pa.int64()), '{"a": 1}', [("a", 1)]),
        (pa.binary(), '"x"', None),
    ],
)
def test_values_that_fit_their_field_are_taken_and_others_are_null(kind, text, value):
    decoded = parse_each(payloads(f'{{"f": {text}}}'.encode()), pa.struct([("f", kind)]))

    assert decoded.to_pylist() == [{"f": value}]


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_a_variant_holds_what_the_json_held(value):
    types = pytest.importorskip("pyspark.sql.types", reason="the extra `spark` is not installed")

    body, names = VariantEncoder().encode(value)

    assert types.VariantVal(body, names).toPython() == value


def test_large_objects_arrays_and_texts_are_variants_too():
    types = pytest.importorskip("pyspark.sql.types", reason="the extra `spark` is not installed")
    value = {f"name{number}": ["x" * 100] * 3 for number in range(400)} | {"list": list(range(70_000))}

    body, names = VariantEncoder().encode(value)

    assert types.VariantVal(body, names).toPython() == value
    assert json.loads(types.VariantVal(body, names).toJson()) == value
