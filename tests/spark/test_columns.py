"""Which columns a query wants."""

import pytest

types = pytest.importorskip("pyspark.sql.types", reason="the extra `spark` is not installed")

from jetlake.errors import ConfigurationError  # noqa: E402
from jetlake.spark.columns import MESSAGE, arrow_schema, narrow  # noqa: E402


def schema(*fields):
    return types.StructType([types.StructField(*field) for field in fields])


HEADERS = types.MapType(types.StringType(), types.ArrayType(types.StringType()))
KINDS = {
    "stream": types.StringType(),
    "subject": types.StringType(),
    "sequence": types.LongType(),
    "timestamp": types.TimestampType(),
    "time_ns": types.LongType(),
    "headers": HEADERS,
    "data": types.BinaryType(),
}


def test_the_arrow_types_are_those_that_spark_expects():
    narrowed = narrow(schema(*KINDS.items()))

    assert narrowed.asked == narrowed.wanted == tuple(MESSAGE)
    assert narrowed.arrow_schema().equals(arrow_schema(tuple(MESSAGE)))


def test_a_decoded_payload_needs_the_payload():
    narrowed = narrow(schema(("sequence", types.LongType()), ("value", types.VariantType())))

    assert (narrowed.asked, narrowed.wanted) == (("sequence", "data"), ("sequence", "value"))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([], "names no column"),
        ([("payload", types.BinaryType())], "a message has no column 'payload'"),
        ([("Sequence", types.LongType())], "did you mean sequence"),
        ([("data", types.StringType())], "the column data is binary"),
        ([("data", types.BinaryType(), False)], "NOT NULL"),
        ([("data", types.BinaryType()), ("data", types.BinaryType())], "names data twice"),
    ],
)
def test_columns_that_there_are_not_are_refused(fields, says):
    with pytest.raises(ConfigurationError, match=says):
        narrow(schema(*fields))
