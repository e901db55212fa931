"""Payloads that are JSON, as columns."""

import json
import math
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


WIDE = pa.struct(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("exact", pa.decimal128(38, 18)),
        ("price", pa.decimal128(4, 2)),
        ("double", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("inner", pa.struct([("ids", pa.list_(pa.int32()))])),
    ]
)
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
NARROW = [pa.struct([("id", kind)]) for kind in (pa.float32(), pa.date32(), pa.map_(pa.string(), pa.int64()))]

FRAGMENTS = st.sampled_from(
    [
        b'{"id":1}{"id":2}',
        b'{"x":',
        b"{}}",
        b'{"x":"',
        b'"}',
        b"{",
        b"",
        b"[1]",
        b"null",
        b'{"id":\n1}',
        b' {"id":1}\t',
        b'\xef\xbb\xbf{"id":1}',
        '{"id":1}'.encode("utf-16"),
        b'{"id":1,"id":2}',
        b'{"text":"\xff"}',
        b'{"unread":"\xff"}',
        b'{"text":"\xed\xa0\xbd"}',
        b'{"text":' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"unread":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ]
)
VALUES = (
    JSON.map(json.dumps)
    | st.decimals(allow_nan=False, allow_infinity=False).map(lambda number: json.dumps(str(number)))
    | st.datetimes().map(lambda moment: json.dumps(moment.isoformat()))
    | st.dates().map(lambda day: json.dumps(day.isoformat()))
    | st.floats(0, 100).map(lambda number: f"{number:.20f}")
    | st.sampled_from(
        [
            "-0",
            "1234",
            "12.34",
            "1e3",
            "1e400",
            "1e99999999999999999999",
            "1" + "0" * 400,
            "-1" + "0" * 5000,
            "NaN",
            "-Infinity",
            '"NaN"',
            "12345678901.5",
            "1234567890123456.78",
            "1.00000005960464477540",
            "19000",
            '"0000-01-31T12:00:00Z"',
            '"\\u0030000-01-31T12:00:00Z"',
            '"2026-01-31T12:00:00+01:00"',
            r'"\ud83d"',
            r'"\udc00"',
            r'"\ud83d\ude00"',
            '[{"key": "a", "value": 1}]',
            '{"ids": [1, 2.0]}',
            '{"ids": [1, "a"]}',
        ]
    )
)
OBJECTS = st.dictionaries(st.sampled_from([*(child.name for child in WIDE), "unread"]), VALUES, max_size=3).map(
    lambda fields: ("{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}").encode()
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


def test_payloads_that_are_not_whole_move_no_value_to_another_row():
    column = payloads(b'{"id":1}{"id":2}', b'{"id":100}', b'{"id":101}', b'{"x":', b"{}}", b'{"id":102}')

    decoded = decode_json(column, pa.field("value", PERSON))

    assert [row and row["id"] for row in decoded.to_pylist()] == [None, 100, 101, None, None, 102]


@given(st.lists(OBJECTS | FRAGMENTS | st.none(), max_size=5), st.sampled_from([WIDE, *NARROW, VARIANT]))
@settings(max_examples=200, deadline=None)
def test_payloads_of_a_batch_are_decoded_as_each_of_them_alone(batch, kind):
    field = pa.field("value", kind)

    decoded = decode_json(payloads(*batch), field)

    decoded.validate(full=True)
    alone = [decode_json(payloads(payload), field).to_pylist()[0] for payload in batch]
    # Not compared as values: NaN equals nothing, and 0.0 equals -0.0.
    assert repr(decoded.to_pylist()) == repr(alone)


@pytest.mark.parametrize(
    ("kind", "text", "row"),
    [
        (pa.string(), r'"\ud83d"', None),
        (pa.string(), r'{"\udc00": 1}', None),
        (pa.float64(), "1" + "0" * 400, {"f": math.inf}),
        (pa.float64(), "-1" + "0" * 5000, {"f": -math.inf}),
        (pa.int64(), "1e999999999", {"f": None}),
        (pa.decimal128(20, 2), "NaN", {"f": None}),
        (pa.decimal128(20, 2), '"NaN"', {"f": None}),
        (pa.decimal128(20, 2), '"-Infinity"', {"f": None}),
        (pa.decimal128(20, 2), "1e99999999999999999999", {"f": None}),
        (pa.decimal128(20, 2), "1" + "0" * 5000, {"f": None}),
    ],
)
def test_no_payload_stops_a_query(kind, text, row):
    field = pa.field("value", pa.struct([("f", kind)]))

    decoded = decode_json(payloads(f'{{"f": {text}}}'.encode(), b"{"), field)

    assert decoded.to_pylist() == [row, None]


@pytest.mark.parametrize("name", ["f", "unread"])
def test_no_depth_of_nesting_stops_a_query_or_depends_on_the_neighbours(name):
    field = pa.field("value", pa.struct([("f", pa.string())]))
    # How deep Python goes depends on the stack of the caller, so this passes by the limit in small steps.
    texts = ["[" * depth + "]" * depth for depth in (*range(850, 1050), 100_000)]
    column = [f'{{"{name}": {text}}}'.encode() for text in texts]

    decoded = decode_json(payloads(*column, b"{"), field).to_pylist()

    alone = []
    for payload in column:  # Not a comprehension: on Python 3.11 that is one call deeper.
        alone += decode_json(payloads(payload), field).to_pylist()
    # Compared by all(), whose report of a failure stays short.
    assert all(one == other for one, other in zip(decoded, alone, strict=False))
    assert all(row in (None, {"f": None}, {"f": text}) for row, text in zip(decoded, texts, strict=False))


@pytest.mark.parametrize(
    "text",
    [
        r'{"a": "\ud83d"}',
        r'{"\udc00": 1}',
        '{"a": "' + "\ud83d" + '"}',
        "[" * 900 + "]" * 900,
        "[" * 100_000 + "]" * 100_000,
    ],
    ids=["escaped", "name", "raw", "nested", "nested deeply"],
)
def test_a_payload_that_no_variant_can_hold_is_null(text):
    column = payloads(text.encode("utf-8", "surrogatepass"), b"1")

    decoded = decode_json(column, pa.field("value", VARIANT))

    assert decoded.is_valid().to_pylist() == [False, True]


@pytest.mark.parametrize(
    ("text", "value"), [("1" + "0" * 308, 1e308), ("1" + "0" * 309, math.inf), ("-1e400", -math.inf)]
)
def test_a_number_beyond_all_doubles_is_infinite_in_a_variant(text, value):
    types = pytest.importorskip("pyspark.sql.types", reason="the extra `spark` is not installed")

    (row,) = decode_json(payloads(text.encode()), pa.field("value", VARIANT)).to_pylist()

    assert types.VariantVal(row["value"], row["metadata"]).toPython() == value


@pytest.mark.parametrize("neighbour", [b'{"f": 1}', b"{"])
@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.decimal128(38, 18), "12345678901.5", Decimal("12345678901.5")),
        (pa.decimal128(20, 2), "1234567890123456.78", Decimal("1234567890123456.78")),
        (pa.decimal128(4, 2), "1e3", None),
        (pa.float64(), "1" + "0" * 400, math.inf),
        (pa.date32(), "19000", None),
    ],
)
def test_a_value_does_not_depend_on_its_neighbours(kind, text, value, neighbour):
    field = pa.field("value", pa.struct([("f", kind)]))

    decoded = decode_json(payloads(f'{{"f": {text}}}'.encode(), neighbour), field)

    assert decoded.to_pylist()[0] == {"f": value}


@pytest.mark.parametrize("neighbour", [b"{}", b"{"])
@pytest.mark.parametrize("name", ["f", "unread"])
def test_a_payload_that_is_not_utf8_is_null_beside_any_other(name, neighbour):
    field = pa.field("value", pa.struct([("f", pa.string())]))

    decoded = decode_json(payloads(f'{{"{name}": "'.encode() + b'\xff"}', neighbour), field)

    decoded.validate(full=True)
    assert decoded.to_pylist()[0] is None


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
