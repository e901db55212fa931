"""What the tests of pipelines share: a stream that is a folder, so that a runner can be tested without a server."""

import datetime
import itertools
import json

import pytest

from jetlake.spark import packs
from jetlake.spark.columns import COLUMNS
from jetlake.spark.decoders import load_packer
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.runner import Runner


class FolderStream:
    """Files of messages that Spark reads as a stream, one file per batch."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.folder = folder
        self.folder.mkdir()
        self._sequences = itertools.count(1)
        self._files = itertools.count(1)
        self.clock = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)

    def publish(self, *payloads, subject="orders.eu", seconds=0):
        """Store messages, all at one moment, `seconds` after the last ones."""
        pairs = [
            (subject, payload if isinstance(payload, bytes) else json.dumps(payload).encode()) for payload in payloads
        ]
        self.publish_all(pairs, seconds=seconds)

    def publish_all(self, pairs, seconds=0):
        """Store messages on subjects of their own, all at one moment."""
        from pyarrow import Table, parquet
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        self.clock += datetime.timedelta(seconds=seconds)
        rows = []
        for subject, data in pairs:
            rows.append(
                {
                    "stream": "ORDERS",
                    "subject": subject,
                    "sequence": next(self._sequences),
                    "timestamp": self.clock,
                    "time_ns": int(self.clock.timestamp()) * 1_000_000_000,
                    "headers": [],
                    "data": data,
                }
            )
        schema = to_arrow_schema(StructType.fromDDL(COLUMNS), timezone="UTC")
        target = self.folder / f"{next(self._files):06}.parquet"
        parquet.write_table(Table.from_pylist(rows, schema=schema), target.with_suffix(".part"))
        target.with_suffix(".part").rename(target)

    def read(self, spark, given, _url):
        """Read as the format `jetlake` would; one file is one batch."""
        from pyspark.sql.types import StructType

        schema = StructType.fromDDL(COLUMNS)
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        messages = reader.parquet(str(self.folder / "*.parquet"))
        return in_packs(messages, given.options["decoder"]) if given.schema == packs.SCHEMA else messages


def in_packs(messages, packer):
    """Return messages as the packs that the reader makes of them."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    schema = to_arrow_schema(StructType.fromDDL(packs.SCHEMA))
    return messages.mapInArrow(lambda batches: packs.packed(batches, load_packer(packer), schema), packs.SCHEMA)


@pytest.fixture
def stream(spark, tmp_path):
    return FolderStream(spark, tmp_path / "stream")


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path / "lake")


@pytest.fixture
def run_once(spark, lake, stream):
    """Run pipelines over everything that was published, and return their states."""

    def run(*pipelines):
        states = Runner(spark, lake, "nats://127.0.0.1:4222", once=True, reader=stream.read).run(pipelines)
        assert [state.error for state in states] == [""] * len(states)
        return states

    return run


@pytest.fixture
def rows_in(spark, lake):
    """Return the rows of a table in an order."""

    def rows(table, *columns, order="sequence"):
        frame = lake.existing(table).read(spark).orderBy(order)
        return [tuple(row) for row in frame.selectExpr(*columns).collect()]

    return rows
