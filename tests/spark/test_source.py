"""The format `jetlake`, as Spark finds it."""

import os
import sys

import pytest

from jetlake.spark.java import find_java

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java())
    # Spark asks a Python of its own which formats there are; it must be one that has this package.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    yield spark
    spark.stop()


@pytest.mark.filterwarnings("ignore")
def test_spark_finds_the_format_by_itself_and_is_told_what_is_missing(session):
    with pytest.raises(Exception, match="this version of Jetlake has none yet: install a later version"):
        session.read.format("jetlake").load().collect()


def test_the_columns_are_those_of_a_message():
    from pyspark_jetlake import DefaultSource

    assert DefaultSource.name() == "jetlake"
    assert DefaultSource({}).schema().startswith("stream STRING, subject STRING, sequence BIGINT")
