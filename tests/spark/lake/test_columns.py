"""Columns of files that different programs have written."""

import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

from jetlake.spark.lake.columns import plain_schema, plain_type  # noqa: E402

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (pa.string_view(), pa.string()),
        (pa.binary_view(), pa.binary()),
        (pa.large_string(), pa.string()),
        (pa.list_(pa.string_view()), pa.list_(pa.field("element", pa.string()))),
        (pa.struct({"a": pa.string_view()}), pa.struct({"a": pa.string()})),
        (pa.map_(pa.string_view(), pa.binary_view()), pa.map_(pa.string(), pa.binary())),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
    ],
)
def test_a_type_becomes_the_one_that_spark_writes(written, plain):
    assert plain_type(written) == plain
    assert pa.array([], written).cast(plain_type(written)).type == plain


def test_columns_of_both_programs_fit_together():
    ours = pa.schema({"name": pa.string(), "tags": pa.list_(pa.field("element", pa.string()))})
    theirs = pa.schema({"name": pa.string_view(), "tags": pa.list_(pa.string_view())})

    assert pa.unify_schemas([plain_schema(ours), plain_schema(theirs)]) == plain_schema(ours)
