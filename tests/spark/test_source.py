"""The format `jetlake`, as Spark finds it."""

import pytest

pytestmark = pytest.mark.spark


def test_the_columns_are_those_of_a_message():
    from pyspark_jetlake import DefaultSource

    assert DefaultSource.name() == "jetlake"
    assert DefaultSource({}).schema().startswith("stream STRING, subject STRING, sequence BIGINT")


def test_a_decoded_payload_is_one_more_column():
    from pyspark_jetlake import DefaultSource

    assert DefaultSource({"decode": "json"}).schema().endswith("data BINARY, value VARIANT")
    assert DefaultSource({"valueSchema": "id BIGINT"}).schema().endswith("value STRUCT<id BIGINT>")
    assert DefaultSource({"valueSchema": "STRUCT<id: BIGINT>"}).schema().endswith("value STRUCT<id: BIGINT>")


def test_importing_the_package_imports_neither_spark_nor_arrow():
    import subprocess
    import sys

    program = (
        "import sys, jetlake.spark, jetlake.spark.options; print({'pyspark', 'pyarrow', 'pandas'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said.strip() == "set()"
